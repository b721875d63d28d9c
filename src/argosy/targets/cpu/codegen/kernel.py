"""A kernel: its C text, what it reads and writes, and into how many chunks its work may be cut."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from argosy.ir.dim import DimLike, dim_max, dim_min, equal, floordiv
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.element import Elements

__all__ = ["CHUNK_WORK", "ENTRY", "Kernel", "KernelWriter", "chunk_count"]

ENTRY = "ARGOSY_ENTRY"
"""Stands for the kernel's name in its text; the name ends in a hash of the text, so equal kernels are one."""

CHUNK_WORK = 32768
"""Elementary operations that make a chunk worth handing to another thread."""
_MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class Kernel:
    """`text` is a C function over the parameter block: pointers of the operands, of the results, then symbols.

    `symbols` are the program's symbols in the order of the block; `chunks` how many pieces the work is cut into;
    `scratch` bytes of scratch memory for each worker; `label` tells people what it does. The operands `in_place`, by
    number, may lie where the result goes: an element of one is read only for the result's element at its own place.
    Where the only result is operands laid end to end, `joins` has them in order, each by its number and its bytes;
    where they are joined in another way, `apart` says why.
    Where all results are pieces of operands, `pieces` has for each the operand's number and the byte where it begins.
    """

    text: str
    symbols: tuple[str, ...]
    chunks: DimLike
    scratch: int = 0
    label: str = ""
    in_place: frozenset[int] = frozenset()
    joins: tuple[tuple[int, DimLike], ...] = ()
    apart: str = ""
    pieces: tuple[tuple[int, DimLike], ...] = ()

    @property
    def entry(self) -> str:
        """The name of the function: label and hash."""
        return f"{self.label or 'kernel'}_{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    def labelled(self, label: str) -> Kernel:
        """The kernel with a label, unless it has one."""
        return self if self.label else replace(self, label=label)

    @property
    def source(self) -> str:
        """The text with its name in place."""
        return self.text.replace(ENTRY, self.entry)

    def flushing(self) -> Kernel:
        """The same kernel with subnormal numbers taken as zero."""
        head, inner = f"ARGOSY_EXPORT void {ENTRY}(", f"{ENTRY}_flushing"
        kept = self.text.replace(head, f"static __attribute__((noinline)) void {inner}(", 1)
        wrapper = f"""{head}const void *params, int64_t chunk, int64_t chunks, void *scratch) {{
  const uint64_t mode = flush_subnormals();
  {inner}(params, chunk, chunks, scratch);
  restore_subnormals(mode);
}}
"""
        return replace(self, text=kept + wrapper)


def chunk_count(work: DimLike, most: DimLike) -> DimLike:
    """Chunks for `work` elementary operations that fall into at most `most` pieces."""
    wanted = dim_max(dim_min(floordiv(work, CHUNK_WORK), _MOST_CHUNKS), 1)
    return dim_max(dim_min(wanted, most), 1)


class KernelWriter:
    """The frame of a kernel for a module: unpacks the parameter block, then what the caller writes into `text`.

    Beside the module's parameters a kernel may read temporaries, which earlier kernels of the op
    wrote: `temporary0`, `temporary1`, …
    """

    def __init__(self, module: Module, results: Sequence[DType], temporaries: Sequence[DType] = ()) -> None:
        self.text = CText()
        self._temporaries = temporaries
        self.module = module
        self._results = results
        self.pointers: dict[Instruction, str] = {p: f"x{i}" for i, p in enumerate(module.parameters)}
        self.elements = Elements(self.text, self.pointers)
        self.stored: DimLike | None = None
        """Where the element at hand is stored in the only result, of a kernel that stores each element once."""
        self.in_place: frozenset[int] = frozenset()
        """`Kernel.in_place`: for one loop over the result, in which nothing is read again later, `read_in_place`."""

    def result(self, index: int = 0) -> str:
        """The C pointer of a result."""
        return f"y{index}"

    def kernel(self, chunks: DimLike, scratch: int = 0) -> Kernel:
        """The finished kernel."""
        in_place = self.in_place
        head = [f"ARGOSY_EXPORT void {ENTRY}(const void *params, int64_t chunk, int64_t chunks, void *scratch) {{"]
        slot = 0
        for parameter in self.module.parameters:
            kind = scalar.storage_type(parameter.result().dtype)
            restrict = "" if slot in in_place else "restrict "
            head.append(f"  const {kind} *{restrict}{self.pointers[parameter]} = ARGOSY_POINTER(params, {slot});")
            slot += 1
        for index, dtype in enumerate(self._temporaries):
            head.append(
                f"  const {scalar.storage_type(dtype)} *restrict temporary{index} = ARGOSY_POINTER(params, {slot});"
            )
            slot += 1
        for index, dtype in enumerate(self._results):
            restrict = "" if in_place else "restrict "
            head.append(f"  {scalar.storage_type(dtype)} *{restrict}y{index} = ARGOSY_POINTER(params, {slot});")
            slot += 1
        for name in self.text.symbols.values():
            head.append(f"  const int64 {name} = ARGOSY_SYMBOL(params, {slot});")
            slot += 1
        head.append("  (void)chunk, (void)chunks, (void)scratch;")
        text = "\n".join([*head, self.text.text(), "}", ""])
        return Kernel(text, tuple(self.text.symbols), chunks, scratch, in_place=in_place)

    def read_in_place(self) -> frozenset[int]:
        """The parameters that are read nowhere but at the place of the result's element, by number.

        Their elements are as wide as the result's, and as many.
        """
        count = product(self.module.results[0].shape)
        bits = {max(dtype.bits, 8) for dtype in self._results}
        return frozenset(
            number
            for number, parameter in enumerate(self.module.parameters)
            if self.elements.reads.get(self.pointers[parameter]) == {self.stored}
            and bits == {max(parameter.result().dtype.bits, 8)}
            and equal(product(parameter.result().shape), count)
        )

"""A kernel: its Triton text, the buffers and symbols that it takes, and the grid of programs that it runs on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from argosy.ir import dim as dims
from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import DType
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.prelude import prelude_for
from argosy.targets.gpu.codegen.tensor_map import TensorMap
from argosy.targets.gpu.codegen.text import TritonText
from argosy.toolchains.triton import TritonSource

__all__ = ["WAIT", "Kernel", "KernelWriter", "Launch"]

WAIT = "gdc.gdc_wait()"
_RELEASE = "gdc.gdc_launch_dependents()"
_ENTRY = "ARGOSY_ENTRY"
"""Stands for the kernel's name in its text; the name ends in a hash of the text, so equal kernels are one."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"    ([A-Za-z_]\w*) = ")
_PROGRAM = re.compile(r"tl\.program_id\(([01])\)")
_COUNT = re.compile(r"tl\.num_programs\(([012])\)")
_NARROW = 1 << 31
"""Bytes from which on places in a buffer need 64 bits."""
_WIDEST = 65535
"""Programs that a grid takes along axis 1 or 2 (CUDA programming guide, "Technical Specifications per Compute
Capability"); axis 0 takes 2^31 - 1."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Into how many programs the work is cut, and how each is compiled."""

    grid: tuple[DimLike, DimLike, DimLike]
    warps: int = 4
    stages: int = 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """`text` is a Triton function of pointers to the operands, to the results, then of symbols, all in order.

    `pointers` are the types of the first, `symbols` the program's symbols, which are passed in `symbol_type`. One that
    `may_fail` takes a pointer to its fault word between them, and one with `counters` then one to so many int32, which
    are 0 when it starts and again when it ends. Behind the symbols come `numbers` integers in the same type, which each
    launch gives. One with `maps` takes those before all others.

    As made, a kernel may start before the one before it in its stream has ended (CUDA programming guide,
    "Programmatic Dependent Launch and Synchronization"): it waits before it reads or writes what others touch.
    """

    text: str
    pointers: tuple[str, ...]
    symbols: tuple[str, ...]
    symbol_type: str
    launch: Launch
    label: str = ""
    may_fail: bool = False
    counters: int = 0
    numbers: int = 0
    maps: tuple[TensorMap, ...] = ()
    language: Literal["triton", "gluon"] = "triton"

    @property
    def is_programmatic(self) -> bool:
        """Whether the kernel may start before the one before it has ended."""
        return WAIT in self.text

    def early(self, weights: Sequence[bool]) -> Kernel:
        """The kernel with what needs only weights in front of its wait, as far as its lines go straight."""
        head, _, body = self.text.partition(f"    {WAIT}\n")
        lines = body.splitlines(keepends=True)
        names = [found[1] if (found := _ASSIGNED.match(line)) else "" for line in lines]
        waiting = {f"p{place}" for place in range(len(self.pointers)) if place >= len(weights) or not weights[place]}
        waiting |= {name for name in names if names.count(name) > 1} | {"fault", "counters"}
        first: list[str] = []
        then: list[str] = []
        for place, (name, line) in enumerate(zip(names, lines, strict=True)):
            if not name:
                then += lines[place:]
                break
            if name in waiting or waiting & set(_NAME.findall(line.partition("=")[2])):
                waiting.add(name)
                then.append(line)
            else:
                first.append(line)
        return replace(self, text="".join((head, *first, f"    {WAIT}\n", *then)))

    def serial(self) -> Kernel:
        """The kernel for devices on which each starts when the one before it has ended."""
        kept = [line for line in self.text.splitlines(keepends=True) if line.strip() not in (WAIT, _RELEASE)]
        return replace(self, text="".join(kept))

    @property
    def entry(self) -> str:
        """The name of the function: label and hash."""
        about = f"{self.text}{self.pointers}{self.symbol_type}{self.launch.warps}{self.launch.stages}"
        about += f"{self.language}{self.maps}" if self.maps else ""
        return f"{self.label or 'kernel'}_{hashlib.sha256(about.encode()).hexdigest()[:16]}"

    def labelled(self, label: str) -> Kernel:
        """The kernel with a label, unless it has one."""
        return self if self.label else replace(self, label=label)

    def source(self) -> TritonSource:
        """What Triton compiles. Every buffer begins at a multiple of 16 bytes."""
        entry, count = self.entry, len(self.pointers)
        types = [(f"map{place}", each.type) for place, each in enumerate(self.maps)]
        types += [(f"p{place}", kind) for place, kind in enumerate(self.pointers)]
        types += [("fault", "*i64")] if self.may_fail else []
        types += [("counters", "*i32")] if self.counters else []
        types += [(f"s{place}", self.symbol_type) for place in range(len(self.symbols))]
        types += [(f"n{place}", self.symbol_type) for place in range(self.numbers)]
        options = (("num_warps", self.launch.warps), ("num_stages", self.launch.stages), ("enable_fp_fusion", False))
        divisible = tuple(range(len(self.maps), len(self.maps) + count))
        text = self.text.replace(_ENTRY, entry)
        return TritonSource(entry, text, tuple(types), divisible, options, self.language)


class KernelWriter:
    """The frame of a kernel for a module: its parameters, then what the caller writes into `text`.

    Beside the module's parameters a kernel may read temporaries, which earlier kernels of the op wrote. `result_orders`
    say how results lie in memory.
    """

    def __init__(
        self,
        module: Module,
        orders: Sequence[tuple[int, ...] | None] = (),
        result_orders: Sequence[tuple[int, ...] | None] = (),
        temporaries: Sequence[DType] = (),
    ) -> None:
        self.text = TritonText()
        self.module = module
        self._temporaries = temporaries
        self._waits = False
        self._numbers = 0
        self.lanes: tuple[str, ...] = ()
        """The block variables over which results are stored."""
        self.result_orders = tuple(result_orders) or (None,) * len(module.results)
        pointers = {parameter: f"p{place}" for place, parameter in enumerate(module.parameters)}
        held = dict(zip(module.parameters, orders, strict=True)) if orders else {}
        self.elements = Elements(self.text, pointers, held)
        shapes = [value.shape for value in (*(p.result() for p in module.parameters), *module.results)]
        widths = [max(v.dtype.bits // 8, 1) for v in (*(p.result() for p in module.parameters), *module.results)]
        self.elements.short = bool(module.results) and all(
            value.dtype.name in ("float16", "bfloat16") for value in module.results
        )
        self.text.wide = any(_is_large(product(shape), width) for shape, width in zip(shapes, widths, strict=True))

    @staticmethod
    def is_large(shape: tuple[DimLike, ...], dtype: DType) -> bool:
        """Whether a tensor may have places that 32 bits can't hold."""
        return _is_large(product(shape), max(dtype.bits // 8, 1))

    def temporary(self, index: int) -> str:
        """The pointer of a temporary."""
        return f"p{len(self.module.parameters) + index}"

    def result(self, index: int = 0) -> str:
        """The pointer of a result."""
        return f"p{len(self.module.parameters) + len(self._temporaries) + index}"

    def store(self, value: str, dtype: DType, place: Access, index: int = 0) -> None:
        """Write elements of a result, in the compute type of `dtype`. Lanes beyond an axis of size 1 write nothing."""
        at, roots = self.elements.place(place, self.result_orders[index])
        still = [lane for lane in self.lanes if lane not in roots]
        mask = self.elements.mask_for(roots | frozenset(still))
        moved = "".join(f" + {lane} * 0" for lane in still)
        masked = f", mask={mask}" if mask else ""
        self.text.line(f"tl.store({self.result(index)} + {at}{moved}, {scalar.to_storage(dtype, value)}{masked})")

    def launch_number(self) -> str:
        """An integer that each launch of the kernel gives, the next in their order."""
        self._numbers += 1
        return f"n{self._numbers - 1}"

    def program(self, axis: int = 0) -> str:
        """The number of the program along an axis of the grid, as an index."""
        name = self.text.fresh("pid")
        widened = ".to(tl.int64)" if self.text.wide else ""
        self.text.line(f"{name} = tl.program_id({axis}){widened}")
        return name

    def wait(self, mark: int) -> None:
        """From this place on the kernel may touch what earlier kernels do; without one, from its beginning on."""
        self.text.insert(mark, [WAIT])
        self._waits = True

    def release(self) -> None:
        """From here on the next kernel may take what room this one leaves: most of the work is done."""
        self.text.line(_RELEASE)

    def kernel(self, launch: Launch, results: Sequence[DType] | None = None, counters: int = 0) -> Kernel:
        """The finished kernel."""
        if not self._waits:
            self.wait(0)
        kinds = [parameter.result().dtype for parameter in self.module.parameters]
        kinds += [*self._temporaries, *(results or [value.dtype for value in self.module.results])]
        pointers = tuple(scalar.pointer_type(kind) for kind in kinds)
        names = [f"p{place}" for place in range(len(pointers))] + (["fault"] if self.text.faults else [])
        names += ["counters"] if counters else []
        lines, launch = self._folded(launch)
        symbols = tuple(self.text.symbols)
        names += [*self.text.symbols.values(), *(f"n{place}" for place in range(self._numbers))]
        head = f"@triton.jit\ndef {_ENTRY}({', '.join(names)}):\n"
        body = head + lines + "\n"
        functions = prelude_for(body)
        text = f"{functions}\n{body}" if functions else body
        width = "i64" if self.text.wide else "i32"
        return Kernel(
            text, pointers, symbols, width, launch,
            may_fail=self.text.faults, counters=counters, numbers=self._numbers,
        )  # fmt: skip

    def _folded(self, launch: Launch) -> tuple[str, Launch]:
        """The lines and the launch, with axis 1 of the grid laid behind axis 0 where it may be too long.

        Programs begin in the same order: along axis 0 first. How many there are is said by the sizes: AMD's code
        generator would read it from arguments that only the driver gives.
        """
        across, down, parts = launch.grid
        counts = [self.text.dim(size) for size in launch.grid] if "num_programs" in self.text.text() else []
        text = _COUNT.sub(lambda found: counts[int(found[1])], self.text.text())
        if not _is_wide(down):
            return text, launch
        row = self.text.dim(across)
        places = {"0": f"(tl.program_id(0) % {row})", "1": f"(tl.program_id(0) // {row})"}
        lines = _PROGRAM.sub(lambda found: places[found[1]], text)
        return lines, replace(launch, grid=(product((across, down)), 1, parts))


def _is_wide(count: DimLike) -> bool:
    """Whether there may be more programs than axis 1 of a grid takes."""
    upper = dims.bounds(count)[1]
    return upper is None or upper > _WIDEST


def _is_large(count: DimLike, width: int) -> bool:
    """Whether a tensor may have places that 32 bits can't hold."""
    upper = dims.bounds(count)[1]
    return upper is None or upper * width >= _NARROW

"""The frame for kernels of single ops whose C is written by hand: operands by place, elements by position."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from argosy.ir.dim import DimLike
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel, KernelWriter
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import strides_of

__all__ = ["OpKernel", "dot_text"]


class OpKernel(KernelWriter):
    """Writes the kernel of the one instruction of `module`. Results are `y0`, `y1`, …, temporaries `temporary0`, …"""

    def __init__(self, module: Module, results: Sequence[DType], temporaries: Sequence[DType] = ()) -> None:
        super().__init__(module, results, temporaries)
        self.instruction: Instruction = module.instructions[-1]
        self._functions: list[str] = []

    def kernel(self, chunks: DimLike, scratch: int = 0) -> Kernel:
        """The finished kernel, its own functions before it."""
        kernel = super().kernel(chunks, scratch)
        return dataclasses.replace(kernel, text="\n".join([*self._functions, kernel.text]))

    def function(self, name: str, head: str, body: str) -> str:
        """Add a C function that only this kernel calls; its name in C. `head` is the type, `(` and the parameters."""
        result, parameters = head.split("(", 1)
        full = f"{ENTRY}_{name}"
        self._functions.append(f"static inline {result.strip()} {full}({parameters} {{\n{body.strip(chr(10))}\n}}")
        return full

    def has(self, index: int) -> bool:
        """Whether operand `index` is given."""
        return index < len(self.instruction.operands) and self.instruction.operands[index] is not None

    def operand(self, index: int) -> Value:
        """Operand `index`; declines where it is absent."""
        value = self.instruction.operands[index] if self.has(index) else None
        if value is None:
            raise DeclinedError(f"{self.instruction.op.name} lacks operand {index}")
        return value

    def pointer(self, index: int) -> str:
        """The C pointer of operand `index`."""
        return self.pointers[self.operand(index).instruction]

    def load(self, index: int, at: str) -> str:
        """Element number `at` of operand `index`, in its compute type."""
        return scalar.load(self.operand(index).dtype, self.pointer(index), at)

    def converted(self, index: int, at: str, target: DType) -> str:
        """Element number `at` of operand `index` as `target`, in the compute type of that."""
        source = self.operand(index).dtype
        value = self.load(index, at)
        return value if source is target else scalar.apply("convert", [value], [source], target)

    def store(self, result: int, dtype: DType, at: str, value: str) -> str:
        """The statement that stores a value of the compute type of `dtype` into a result."""
        return f"{scalar.store(dtype, self.result(result), at, value)};"

    def dim(self, index: int, axis: int) -> str:
        """A dim of operand `index`, as C."""
        return self.text.dim(self.operand(index).shape[axis])

    def count(self, dims: Sequence[DimLike]) -> str:
        """How many elements tensors of these dims have, as C."""
        return self.text.dim(product(tuple(dims)))

    def strides(self, dims: Sequence[DimLike]) -> list[str]:
        """Row-major strides in elements, as C."""
        return [self.text.dim(stride) for stride in strides_of(tuple(dims))]

    def code(self, text: str) -> None:
        """Append lines of C, brought to the depth of the text so far."""
        for line in text.strip("\n").splitlines():
            self.text.line(line)

    @contextmanager
    def share(self, name: str, total: str) -> Iterator[None]:
        """The chunk's share of a loop over [0, total)."""
        whole = self.text.let("int64", total)
        with self.text.loop(name, f"{whole} * chunk / chunks", f"{whole} * (chunk + 1) / chunks"):
            yield

    def counters(self, flat: str, dims: Sequence[DimLike], stem: str) -> list[str]:
        """Declare the coordinates of element number `flat` of a tensor of these dims; their names."""
        names = [f"{stem}{axis}" for axis in range(len(dims))]
        rest = self.text.fresh("left")
        self.text.line(f"int64 {rest} = {flat};")
        for axis in reversed(range(len(dims))):
            size = self.text.dim(dims[axis])
            self.text.line(f"const int64 {names[axis]} = {rest} % {size}; {rest} /= {size};")
        self.text.line(f"(void){rest};")
        return names


def dot_text(factors: Sequence[str], strides: Sequence[str]) -> str:
    """The sum of products, as C."""
    return " + ".join(f"{a} * {b}" for a, b in zip(factors, strides, strict=True)) or "0"

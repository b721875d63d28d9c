"""The frame for kernels of single ops whose Triton is written by hand: a lane for each of some items.

Operands are known by place, elements by position in row-major order. Values are blocks of one axis, `BLOCK` lanes wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import strides_of

__all__ = ["BLOCK", "OpKernel"]

BLOCK: Final = 256
"""Items of a program, each with a loop of its own."""


class OpKernel(KernelWriter):
    """Writes the kernel of the one instruction of `module`. `results` are the element types that it stores.

    Where a mask is asked for, it is the name of a block of booleans; "" stands for all lanes.
    """

    def __init__(self, module: Module, results: Sequence[DType] = (), temporaries: Sequence[DType] = ()) -> None:
        super().__init__(module, (), (), temporaries)
        self.instruction: Instruction = module.instructions[-1]
        self.stored = tuple(results) or tuple(value.dtype for value in module.results)
        self._kinds = tuple(temporaries)
        self._count: DimLike = 1
        self._lanes = BLOCK

    def items(self, count: DimLike, name: str = "i", lanes: int = BLOCK) -> None:
        """A lane for each of `count` items, `lanes` to a program: `name` is its number; `inside` tells who has one."""
        self._count, self._lanes = count, lanes
        self.text.root(name, f"{self.program()} * {lanes} + tl.arange(0, {lanes})")
        self.text.line(f"inside = {name} < {self.text.dim(count)}")
        self.elements.masks.append(("inside", self.text.roots[name]))

    def finished(self, warps: int = 4) -> Kernel:
        """The kernel over the items that `items` counted."""
        return self.kernel(Launch((ceildiv(self._count, self._lanes), 1, 1), warps), self.stored)

    def has(self, index: int) -> bool:
        """Whether operand `index` is given."""
        return index < len(self.instruction.operands) and self.instruction.operands[index] is not None

    def operand(self, index: int) -> Value:
        """Operand `index`; declines where it is absent."""
        value = self.instruction.operands[index] if self.has(index) else None
        if value is None:
            raise DeclinedError(f"{self.instruction.op.name} lacks operand {index}")
        return value

    def load(self, index: int, at: str, mask: str = "inside") -> str:
        """A variable with element number `at` of operand `index`, in its compute type; 0 where the mask fails."""
        value = self.operand(index)
        masked = f", mask={mask}, other=0" if mask else ""
        pointer = self.elements.pointers[value.instruction]
        return self.text.let(scalar.from_storage(value.dtype, f"tl.load({pointer} + {at}{masked})"))

    def converted(self, index: int, at: str, target: DType, mask: str = "inside") -> str:
        """A variable with an element as `target`, in the compute type of that."""
        source, value = self.operand(index).dtype, self.load(index, at, mask)
        return value if source is target else self.text.let(scalar.apply("convert", [value], [source], target))

    def load_temporary(self, index: int, at: str, mask: str = "inside") -> str:
        """A variable with an element of a temporary, in the compute type."""
        masked = f", mask={mask}, other=0" if mask else ""
        return self.text.let(
            scalar.from_storage(self._kinds[index], f"tl.load({self.temporary(index)} + {at}{masked})")
        )

    def put(self, at: str, value: str, result: int = 0, mask: str = "inside") -> None:
        """Store a value of the compute type into a result."""
        masked = f", mask={mask}" if mask else ""
        stored = scalar.to_storage(self.stored[result], value)
        self.text.line(f"tl.store({self.result(result)} + {at}, {stored}{masked})")

    def load_neighbours(self, pointer: str, kind: DType, at: str, count: int, mask: str = "inside") -> list[str]:
        """Variables with 2 or 4 elements from `at` on, which each lane loads at once."""
        text = self.text
        where = f"{pointer} + ({at})[:, None] + tl.arange(0, {count})[None, :]"
        whole = text.let(scalar.from_storage(kind, f"tl.load({where}, mask=({mask})[:, None], other=0)"))
        names = [text.fresh("t") for _ in range(count)]
        if count == 2:
            text.line(f"{names[0]}, {names[1]} = tl.split({whole})")
            return names
        even, odd = text.fresh("t"), text.fresh("t")
        text.line(f"{even}, {odd} = tl.split(tl.reshape({whole}, [{whole}.shape[0], 2, 2]))")
        text.line(f"{names[0]}, {names[2]} = tl.split({even})")
        text.line(f"{names[1]}, {names[3]} = tl.split({odd})")
        return names

    def put_pair(self, at: str, values: tuple[str, str], result: int = 0, mask: str = "inside") -> None:
        """Store two blocks of the compute type into a result, side by side: each lane stores its two at once."""
        pair = scalar.to_storage(self.stored[result], f"tl.join({values[0]}, {values[1]})")
        where = f"{self.result(result)} + ({at})[:, None] + tl.arange(0, 2)[None, :]"
        self.text.line(f"tl.store({where}, {pair}, mask=({mask})[:, None])")

    def dim(self, index: int, axis: int) -> str:
        """A dim of operand `index`, as Triton."""
        return self.text.dim(self.operand(index).shape[axis])

    def count(self, dims: Sequence[DimLike]) -> str:
        """How many elements tensors of these dims have, as Triton."""
        return self.text.dim(product(tuple(dims)))

    def strides(self, dims: Sequence[DimLike]) -> list[str]:
        """Row-major strides in elements, as Triton."""
        return [self.text.dim(stride) for stride in strides_of(tuple(dims))]

    def code(self, text: str) -> None:
        """Append lines of Triton, brought to the depth of the text so far."""
        for line in text.strip("\n").splitlines():
            self.text.line(line)

    def zeros(self, name: str, kind: str, value: str = "0") -> None:
        """Define a block that a loop changes."""
        self.text.line(f"{name} = tl.full([{BLOCK}], {value}, {kind})")

    def counters(self, flat: str, dims: Sequence[DimLike], stem: str) -> list[str]:
        """Define the coordinates of element number `flat` of a tensor of these dims; their names."""
        names = [f"{stem}{axis}" for axis in range(len(dims))]
        left = flat
        for axis in reversed(range(1, len(dims))):
            size = self.text.dim(dims[axis])
            self.text.derive(names[axis], f"{left} % {size}", left)
            left = self.text.derive(self.text.fresh("left"), f"{left} // {size}", left)
        if names:
            self.text.derive(names[0], left, left)
        return names

    def number(self, index: int) -> DimLike:
        """The one number of operand `index`, which steers the op."""
        operand = self.operand(index)
        found = self.elements.entries(None, operand)
        if not found or len(found) != 1:
            raise DeclinedError(f"operand {index} of {self.instruction.op.name} is not one number")
        return found[0]

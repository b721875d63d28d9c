"""One element of a value, computed where it is read: the heart of the loop kernels.

`Elements.of(value, access)` writes the C that computes the element of `value` which `access` names, and
returns the variable that holds it. Views only change the access; pointwise ops compute; parameters load. An
emitter for another op is a function registered by the op's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from argosy.errors import ArgosyError
from argosy.ir.access import Access
from argosy.ir.dim import Dim, DimLike, Symbol, symbol_dim
from argosy.ir.dtype import INT64, DType
from argosy.ir.module import Constant, Instruction, Parameter, Value
from argosy.ops.joining import Split
from argosy.ops.pointwise import Pointwise
from argosy.registry import Registry
from argosy.rewrite.view_chain import view_access
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.lowering.accesses import (
    LEAST,
    DeclinedError,
    broadcast_access,
    op_of,
    present,
    split_access,
    typed_steps,
)
from argosy.targets.lowering.kernel_text import strides_of

__all__ = ["Elements", "element"]


Emitter = Callable[["Elements", Instruction, Access], str]
E = TypeVar("E", bound=Emitter)
_EMITTERS: Registry[str, Emitter] = Registry("element emitter", "argosy.targets.cpu.codegen.emitters")


def element(*names: str) -> Callable[[E], E]:
    """Register the emitter of the ops called `names`."""

    def enter(emitter: E) -> E:
        for name in names:
            _EMITTERS.add(name, emitter)
        return emitter

    return enter


class Elements:
    """Writes elements of the values of one kernel into `text`.

    `offsets` are the positions of all accesses so far, `reads` those at which each pointer is read; `positional` says
    that an element depends on its place in another way too. `pointers` gives the C pointer of each parameter; `given`
    values that were computed already (the anchor's result) by the C variable that holds them.
    """

    def __init__(self, text: CText, pointers: dict[Instruction, str]) -> None:
        self.text = text
        self.pointers = pointers
        self.given: dict[Value, str] = {}
        self.offsets: list[DimLike] = []
        self.reads: dict[str, set[DimLike]] = {}
        self.positional = False
        self._scopes: list[dict[tuple[Value, Access], str]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not visible outside."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def of(self, value: Value, access: Access) -> str:
        """The C variable with the element of `value` at `access`, in the compute type of its element type."""
        if value in self.given:
            return self.given[value]
        key = (value, access)
        for scope in self._scopes:
            if key in scope:
                return scope[key]
        found = self._emit(value, access)
        self._scopes[-1][key] = found
        return found

    def _emit(self, value: Value, access: Access) -> str:
        instruction = value.instruction
        if access.conditions:
            raise DeclinedError("a conditional access outside a pad")
        if isinstance(instruction.op, Parameter):
            return self.load(value.dtype, self.pointers[instruction], access)
        if isinstance(instruction.op, Constant):
            literal = instruction.op.literal
            if literal.size != 1 and not literal.is_splat:
                raise DeclinedError("a constant of several elements inside a kernel")
            return self.constant(literal.item(), value.dtype)
        if isinstance(instruction.op, Split):
            return self.of(present(instruction, 0), self.compose(access, split_access(instruction, value.index)))
        emitter = _EMITTERS.get(instruction.op.name)
        if emitter is not None:
            return emitter(self, instruction, access)
        step = view_access(instruction)
        if step is None or step.conditions:
            raise DeclinedError(f"{instruction.op.name} has no kernel")
        return self.of(present(instruction, 0), self.compose(access, step))

    def compose(self, outer: Access, inner: Access) -> Access:
        """The access of an operand, from the access of the result and the op's own map."""
        try:
            return outer.compose(inner)
        except ArgosyError as error:
            raise DeclinedError(error.what) from None

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        """The element of a buffer."""
        at = self.offset(access)
        self.reads.setdefault(pointer, set()).add(self.offsets[-1])
        return self.text.let(scalar.compute_type(dtype), scalar.load(dtype, pointer, at))

    def offset(self, access: Access) -> str:
        """The row-major position of an element, as C."""
        total: DimLike = 0
        for index, step in zip(access.indices, strides_of(access.source), strict=True):
            total = total + index * step if isinstance(index, Dim) else step * index + total
        self.offsets.append(total)
        return self.text.dim(total)

    def position(self, index: DimLike) -> str:
        """An index as a number that the element depends on."""
        self.positional = True
        return self.text.dim(index)

    def index(self, value: Value, access: Access, size: DimLike) -> DimLike:
        """An integer element as an index into an axis of `size`: negative ones count from the end, clamped."""
        raw = self.of(value, access)
        limit = self.text.dim(size)
        name = self.text.fresh("v")
        self.text.line(f"const int64 {name} = dim_index((int64){raw}, {limit}, scratch);")
        upper = size - 1 if isinstance(size, int) else None
        return symbol_dim(Symbol(f"@{name}", 0, upper)) if upper != 0 else 0

    def let(self, dtype: DType, expression: str) -> str:
        """A variable in the compute type of `dtype`."""
        return self.text.let(scalar.compute_type(dtype), expression)

    def expression(self, primitive: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
        """The C of a primitive on elements of `types`; `result` is its element type."""
        return scalar.apply(primitive, args, types, result)

    def constant(self, value: Any, dtype: DType) -> str:
        """A number in the compute type of `dtype`."""
        return scalar.constant(value, dtype)

    def local(self, expression: str, lower: int = LEAST, upper: int | None = None) -> DimLike:
        """An int64 expression as a dim: a new variable, of which no more is known than its bounds."""
        return symbol_dim(Symbol(f"@{self.text.let('int64', expression)}", lower, upper))

    def entries(self, attribute: Sequence[DimLike] | None, operand: Value | None) -> list[DimLike] | None:
        """Numbers that steer an op: the attribute's, else what is known of the operand, else its elements, read here.

        None where neither is given. Declines where their number is not known.
        """
        if attribute is not None:
            return list(attribute)
        if operand is None:
            return None
        if operand.known is not None:
            return [entry if isinstance(entry, Dim) else int(entry) for entry in operand.known.reshape(-1)]
        shape = [size for size in operand.shape if isinstance(size, int)]
        if len(shape) != operand.rank or len(shape) > 1:
            raise DeclinedError(f"an op is steered by {operand.type}")
        places = [Access((), operand.shape, (place,)) for place in range(shape[0])] if shape else [Access((), (), ())]
        return [self.local(f"(int64){self.of(operand, place)}") for place in places]

    def number(self, dim: DimLike) -> str:
        """A dim as an int64 value."""
        return self.let(INT64, self.text.dim(dim))


@element("pointwise")
def _pointwise(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Pointwise)
    result = instruction.result()
    names: list[str] = []
    for operand in instruction.operands:
        if operand is None:
            raise DeclinedError("a pointwise operand is absent")
        names.append(elements.of(operand, broadcast_access(operand, result, access)))
    kinds = [operand.dtype for operand in instruction.operands if operand is not None]
    for step, arg_types, kind in typed_steps(op, kinds):
        args = [
            names[ref] if isinstance(ref, int) else elements.constant(ref.value, beside)
            for ref, beside in zip(step.args, arg_types, strict=True)
        ]
        names.append(elements.let(kind, elements.expression(step.primitive, args, arg_types, kind)))
    return names[-1]

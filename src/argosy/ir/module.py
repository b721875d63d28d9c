"""Instructions and modules: an immutable graph in topological order.

An instruction applies an op to operands and has n >= 0 results; a `Value` is one result of one
instruction. A module is a closed function: everything it reads from outside comes in as a parameter, so
the bodies of control ops are modules like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from argosy.errors import ModelError
from argosy.ir.literal import Literal
from argosy.ir.op import Known, Op, register
from argosy.ir.types import TensorType, Type, UnrankedError

if TYPE_CHECKING:
    from argosy.ir.dim import DimLike
    from argosy.ir.dtype import DType

__all__ = ["Constant", "Instruction", "Module", "Parameter", "Value"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Instruction:
    """One step of a module.

    `types` and `known` have an entry for each result; `names` are the results' names in the source model
    (or empty), `source` is the node that it came from, as errors name it. `defines` are the symbols that it gives
    a value, as the builder that inferred its types says; None for an instruction whose types were given, which
    the validator infers. A copy by `dataclasses.replace` does not keep it.
    """

    op: Op
    operands: tuple[Value | None, ...]
    types: tuple[Type, ...]
    known: tuple[Known | None, ...]
    names: tuple[str, ...] = ()
    source: str = ""
    defines: tuple[str, ...] | None = field(init=False, default=None)

    def result(self, index: int = 0) -> Value:
        """The value of result `index`."""
        return Value(self, index)

    @property
    def results(self) -> tuple[Value, ...]:
        """All results as values."""
        return tuple(Value(self, index) for index in range(len(self.types)))

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.source or ', '.join(self.names)}>"


class Value(msgspec.Struct, frozen=True):
    """Result `index` of an instruction."""

    instruction: Instruction
    index: int

    @property
    def type(self) -> Type:
        """The value's type."""
        return self.instruction.types[self.index]

    @property
    def tensor(self) -> TensorType:
        """The value's type, which must be a tensor's; raises ModelError for a sequence, optional or map."""
        kind = self.instruction.types[self.index]
        if not isinstance(kind, TensorType):
            raise ModelError(f"expected a tensor, found {kind}")
        return kind

    @property
    def dtype(self) -> DType:
        """Element type of a tensor value."""
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[DimLike, ...]:
        """Dims of a tensor value; raises UnrankedError where the rank is unknown."""
        dims = self.tensor.dims
        if dims is None:
            raise UnrankedError
        return dims

    @property
    def rank(self) -> int:
        """Rank of a tensor value; raises UnrankedError where it is unknown."""
        return len(self.shape)

    @property
    def known(self) -> Known | None:
        """The value as an object array of numbers and dims, where that much is known while compiling."""
        return self.instruction.known[self.index]

    @property
    def constant(self) -> Literal | None:
        """The literal, where the value is a constant instruction's."""
        op = self.instruction.op
        return op.literal if isinstance(op, Constant) else None

    @property
    def name(self) -> str:
        """The value's name in the source model, or an empty string."""
        return self.instruction.names[self.index] if self.index < len(self.instruction.names) else ""

    def __repr__(self) -> str:
        return f"<value {self.index} of {self.instruction!r}>"


@register
@dataclass(frozen=True, slots=True)
class Parameter(Op):
    """An input of a module. It has no operands; the caller gives its value."""

    name = "parameter"
    type: Type

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (self.type,)


@register
@dataclass(frozen=True, slots=True)
class Constant(Op):
    """A literal."""

    name = "constant"
    literal: Literal

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.literal.dtype, self.literal.shape),)

    def evaluate(self, *values: object) -> tuple[object, ...]:
        return (self.literal.array(),)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Module:
    """A closed function from parameters to results.

    `instructions` holds everything but the parameters, each after what it reads; `results` are the values
    returned, `result_names` their names.
    """

    name: str
    parameters: tuple[Instruction, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[Value, ...]
    result_names: tuple[str, ...]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(parameter.names[0] for parameter in self.parameters)

    def walk(self) -> Iterator[Instruction]:
        """Every instruction of the module and of the modules inside it, outer before inner."""
        for instruction in (*self.parameters, *self.instructions):
            yield instruction
            for inner in instruction.op.modules():
                yield from inner.walk()

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self.instructions)} instructions>"

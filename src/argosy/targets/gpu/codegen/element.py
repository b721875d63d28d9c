"""Elements of a value, computed where they are read: the heart of all kernels.

`Elements.of(value, access)` writes the Triton that computes the elements of `value` which `access` names, for a whole
block of the iteration space at once, and returns the variable that holds them. Its shape is as small as what it depends
on: Triton broadcasts. Views only change the access; pointwise ops compute; parameters load. An emitter for another op
is a function registered by the op's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from argosy.errors import ArgosyError
from argosy.ir.access import Access
from argosy.ir.dim import Dim, DimLike, Symbol, bounds, symbol_dim
from argosy.ir.dtype import FLOAT32, UINT8, DType
from argosy.ir.module import Constant, Instruction, Parameter, Value
from argosy.ops.joining import Split
from argosy.ops.pointwise import Pointwise
from argosy.registry import Registry
from argosy.rewrite.view_chain import view_access
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.text import TritonText
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

__all__ = ["Elements", "Orders", "element"]

Orders = Mapping[Instruction, tuple[int, ...] | None]
"""How the axes of each parameter lie in memory, outermost first; None stands for row-major."""


Emitter = Callable[["Elements", Instruction, Access], str]
E = TypeVar("E", bound=Emitter)
_EMITTERS: Registry[str, Emitter] = Registry("GPU element emitter", "argosy.targets.gpu.codegen.emitters")


def element(*names: str) -> Callable[[E], E]:
    """Register the emitter of the ops called `names`."""

    def enter(emitter: E) -> E:
        for name in names:
            _EMITTERS.add(name, emitter)
        return emitter

    return enter


class Elements:
    """Writes elements of the values of one kernel into `text`.

    `masks` say for which places of the block anything may be read, and which block variables each depends on: what is
    read at the same place for all of these needs it not. `given` are values that were computed
    already (the anchor's result) by the variable that holds them. `flat` is the row-major place in the iteration space
    and the variable that holds it: Triton sees of it that neighbours lie side by side.
    """

    def __init__(self, text: TritonText, pointers: Mapping[Instruction, str], orders: Orders) -> None:
        self.text = text
        self.pointers = pointers
        self.orders = orders
        self.masks: list[tuple[str, frozenset[str]]] = []
        self.given: dict[Value, str] = {}
        self.flat: tuple[DimLike, str] | None = None
        self.row: tuple[str, str, tuple[DimLike, ...]] | None = None
        """Of a kernel that holds whole rows: the shape of its block, the mask of the elements in it, and their dims."""
        self.short = False
        """Whether all results are short floats, so that functions in float32 need not be right to its last bits."""
        self._scopes: list[dict[tuple[Value, Access], str]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not known outside."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def only(self, condition: str, roots: frozenset[str]) -> Iterator[None]:
        """Nothing is read inside but where `condition`, on these block variables, holds as well."""
        self.masks.append((condition, roots))
        outer, self._scopes = self._scopes, [{}]
        yield
        self._scopes = outer
        self.masks.pop()

    def mask_for(self, roots: frozenset[str]) -> str:
        """The mask of a load or store at places that depend on these block variables; empty where all are inside."""
        return " & ".join(name for name, own in self.masks if own <= roots)

    def within(
        self, value: Value, access: Access, shape: tuple[int, int], mask: str, lanes: Sequence[str], *,
        coded: bool = False,
    ) -> str:  # fmt: skip
        """A whole tile of a value, 0 where the mask does not hold; `lanes` are the block variables that it goes over.

        Where `coded`, as elements are stored, else in their compute type.

        Triton 3.9 can't fetch ahead what is repeated along a tile before it is multiplied (`tritongpu-prefetch` on
        `mma.sync` cuts the short side): a choice between operands makes it leave that alone.
        """
        element = self.stored(value, access) if coded else self.of(value, access)
        found = self.text.let(f"tl.broadcast_to({element}, {list(shape)})")
        zero = scalar.constant(0, UINT8 if coded else value.dtype)
        if repeated := [lane for lane in lanes if lane not in self.text.roots_of_all(access.indices)]:
            mask = " & ".join(filter(None, (mask, f"({repeated[0]} >= 0)")))
            return self.text.let(f"tl.where({mask}, {found}, {zero})")
        if not mask or (_is_read(value) and self.text.roots_of_all(access.indices) >= self._roots_in(mask)):
            return found
        return self.text.let(f"tl.where({mask}, {found}, {zero})")

    def _roots_in(self, mask: str) -> frozenset[str]:
        return frozenset().union(*(roots for name, roots in self.masks if name in mask.split(" & ")))

    def of(self, value: Value, access: Access) -> str:
        """The variable with the elements of `value` at `access`, in the compute type of its element type."""
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
            return self.let(scalar.from_storage(value.dtype, self.load(instruction, access)))
        if isinstance(instruction.op, Constant):
            literal = instruction.op.literal
            if literal.size != 1 and not literal.is_splat:
                raise DeclinedError("a constant of several elements inside a kernel")
            return self.let(self.constant(literal.item(), value.dtype))
        if isinstance(instruction.op, Split):
            return self.of(present(instruction, 0), self.compose(access, split_access(instruction, value.index)))
        emitter = _EMITTERS.get(instruction.op.name)
        if emitter is not None:
            return emitter(self, instruction, access)
        step = view_access(instruction)
        if step is None or step.conditions:
            raise DeclinedError(f"{instruction.op.name} has no kernel")
        return self.of(present(instruction, 0), self.compose(access, step))

    def stored(self, value: Value, access: Access) -> str:
        """The elements of `value` as they are stored: as they come where they are just read."""
        if not _is_read(value):
            return self.let(scalar.to_storage(value.dtype, self.of(value, access)))
        instruction = value.instruction
        while not isinstance(instruction.op, Parameter):
            step = view_access(instruction)
            if step is None or step.conditions:
                raise DeclinedError(f"{instruction.op.name} has no kernel")
            access, instruction = self.compose(access, step), present(instruction, 0).instruction
        return self.load(instruction, access)

    def compose(self, outer: Access, inner: Access) -> Access:
        """The access of an operand, from the access of the result and the op's own map."""
        try:
            return outer.compose(inner)
        except ArgosyError as error:
            raise DeclinedError(error.what) from None

    def load(self, parameter: Instruction, access: Access) -> str:
        """Elements of a parameter, as they are stored."""
        kind = parameter.result().dtype
        if kind.name == "float64" or kind.kind in ("int", "uint") or kind.is_float or kind.kind == "bool":
            at, roots = self.place(access, self.orders.get(parameter))
            mask = self.mask_for(roots)
            masked = f", mask={mask}, other=0" if mask else ""
            return self.let(f"tl.load({self.pointers[parameter]} + {at}{masked})")
        raise DeclinedError(f"kernels hold no {kind}")

    def place(self, access: Access, order: tuple[int, ...] | None = None) -> tuple[str, frozenset[str]]:
        """The place of elements in memory, as Triton, and the block variables on which it depends."""
        total: DimLike = 0
        for index, step in zip(access.indices, strides_of(access.source, order), strict=True):
            total = total + index * step if isinstance(index, Dim) else step * index + total
        if self.flat is not None and total == self.flat[0] and total != 0:
            return self.flat[1], self.text.roots[self.flat[1]]
        return self.text.dim(total), self.text.roots_of(total)

    def fault(self, condition: str, fault: Fault, value: str) -> None:
        """Report a fault with an integer that it tells, where the condition holds and anything is read."""
        self.text.faults = True
        asked = " & ".join([f"({condition})", *(name for name, _ in self.masks)])
        self.text.line(f"report(fault, {asked}, {fault.value}, {value})")

    def index(self, value: Value, access: Access, size: DimLike) -> DimLike:
        """Integer elements as an index into an axis of `size`: negative ones count from the end.

        Others are faults, unless it is known that there are none; they are clamped, so that nothing outside is read.
        """
        raw = self.of(value, access)
        if not _all_within(value, size):
            self.fault(f"outside({raw}, {self.text.dim(size)})", Fault.INDEX, raw)
        name = self.text.let(f"index_within({raw}, {self.text.dim(size)}).to({self.text.index_type})", "v")
        self.text.roots[name] = frozenset().union(*map(self.text.roots_of, access.indices))
        upper = size - 1 if isinstance(size, int) else None
        return symbol_dim(Symbol(f"@{name}", 0, upper)) if upper != 0 else 0

    def let(self, expression: str) -> str:
        """A variable that holds an expression."""
        return expression if expression.isidentifier() else self.text.let(expression)

    def expression(self, primitive: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
        """The Triton of a primitive on elements of `types`; `result` is its element type."""
        if self.short and primitive in scalar.SHORT and types[0].compute is FLOAT32:
            return scalar.SHORT[primitive].format(*args)
        return scalar.apply(primitive, args, types, result)

    def exp(self, value: str) -> str:
        """The Triton of a power of e in float32."""
        return f"tl.exp({value})" if self.short else f"libdevice.exp({value})"

    def constant(self, value: Any, dtype: DType) -> str:
        """A number in the compute type of `dtype`."""
        return scalar.constant(value, dtype)

    def local(self, expression: str, lower: int = LEAST, upper: int | None = None) -> DimLike:
        """An index expression as a dim: a new variable, of which no more is known than its bounds."""
        return symbol_dim(Symbol(f"@{self.text.let(expression, 'v')}", lower, upper))

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
        kind = self.text.index_type
        return [self.local(f"{self.of(operand, place)}.to({kind})") for place in places]


def _all_within(value: Value, size: DimLike) -> bool:
    """Whether all elements are known, and are indices into an axis of `size`."""
    known = value.known
    low = bounds(size)[0] or 0
    return known is not None and all(
        isinstance(entry, int) and -low <= entry < low for entry in known.reshape(-1).tolist()
    )


def _is_read(value: Value) -> bool:
    """Whether elements are just read, so that what a mask keeps out is 0 already."""
    instruction = value.instruction
    while not isinstance(instruction.op, Parameter):
        operand = instruction.operands[0] if instruction.operands else None
        if operand is None or view_access(instruction) is None or len(instruction.types) != 1:
            return False
        instruction = operand.instruction
    return True


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
        names.append(elements.let(elements.expression(step.primitive, args, arg_types, kind)))
    return names[-1]

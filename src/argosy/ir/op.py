"""What an operation is: a frozen dataclass whose fields are its attributes.

A subclass states what it means in two methods: `infer` gives the types of its results from its operands,
`evaluate` computes them with numpy. That is all that the reference target, constant folding and every
check need. Ops register by `@register`, and are found by walking the `argosy.ops` package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from argosy.errors import ArgosyError, ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike, Symbol
from argosy.ir.dtype import Array
from argosy.ir.types import MAX_RANK, Dims, TensorType, Type, UnrankedError
from argosy.registry import Registry, did_you_mean

if TYPE_CHECKING:
    from argosy.ir.module import Module, Value

__all__ = ["OPS", "Env", "Known", "Op", "fresh", "map_attribute_dims", "op_class", "register"]

Known = Array
"""A small integer (or bool, or float) tensor known while compiling: an object array of numbers and dims."""

OPS: Registry[str, type[Op]] = Registry("op", "argosy.ops")
C = TypeVar("C", bound="type[Op]")


@dataclass(frozen=True, slots=True)
class Env:
    """What an evaluation runs under: values of the symbols (filled in as they are met) and the run's number.

    `iterations` are the numbers of the iterations that it is in, outermost first; random numbers depend on them.
    """

    symbols: dict[str, int] = field(default_factory=dict)
    run: int = 0
    iterations: tuple[int, ...] = ()

    def inner(self) -> Env:
        """An environment for the body of a control op: sees the outer symbols, binds its own."""
        return Env(dict(self.symbols), self.run, self.iterations)

    def iteration(self, number: int) -> Env:
        """Like `inner`, for one iteration of a body."""
        return Env(dict(self.symbols), self.run, (*self.iterations, number))


def fresh(tag: str, *, lower: int = 0, upper: int | None = None) -> DimLike:
    """A data-dependent dim in the result of `infer`; the builder gives it a name that is unique in the program."""
    return dims.symbol_dim(Symbol(f"?{tag}", lower, upper))


class Op:
    """Base of all ops. Subclasses are frozen dataclasses registered by name.

    Class attributes: `name` and `version` identify the op in files; `pure` is False where two evaluations with equal
    operands may differ (random numbers), or where more than the results matters, which keeps folding and sharing
    away; `moves_data` says that results hold elements of the first operand unchanged, so that `evaluate` also works
    on known dims.
    """

    __slots__ = ()
    name: ClassVar[str]
    version: ClassVar[int] = 1
    pure: ClassVar[bool] = True
    moves_data: ClassVar[bool] = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        """Types of the results. May read `.type`, `.known` and `.constant` of each operand.

        Raises ModelError where the operands contradict the op; UnrankedError may pass through.
        """
        raise NotImplementedError

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        """Types of the results where `infer` met a tensor of unknown rank: by default, one like the first operand."""
        first = next(operand for operand in operands if operand is not None)
        return (TensorType(first.tensor.dtype, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        """The results for concrete values (None for an absent operand). Must not change its arguments."""
        raise NotImplementedError

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        """`evaluate` under an environment: symbolic attributes are bound first. Control ops override this."""
        return self.bind(env.symbols).evaluate(*values)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        """Known values of the results, where known values of the operands determine them; None if not."""
        if not self.moves_data or (type(self) in _SYMBOLIC and any(map(_holds_dims, self.attributes().values()))):
            return None
        values: list[Known | None] = []
        for operand in operands:
            if operand is None:
                values.append(None)
            elif operand.known is None:
                return None
            else:
                values.append(operand.known)
        # The first operand keeps its object elements; the others steer and must be plain numbers.
        steering = []
        for value in values[1:]:
            if value is not None and any(isinstance(element, Dim) for element in value.flat):
                return None
            steering.append(None if value is None else _plain(value))
        return tuple(self.evaluate(values[0], *steering))

    def modules(self) -> tuple[Module, ...]:
        """The modules that the op holds (bodies of control ops and fused ops)."""
        return ()

    def result_types(self, *operands: Value | None) -> tuple[Type, ...]:
        """`infer`, or `infer_unranked` where a rank is missing.

        Raises ModelError also for a result that no tensor can be: of a negative size, or of too many axes.
        """
        try:
            types = self.infer(*operands)
        except UnrankedError:
            types = self.infer_unranked(*operands)
        for kind in types:
            if isinstance(kind, TensorType) and kind.dims:
                _check_dims(kind.dims)
        return types

    def bind(self, values: Mapping[str, DimLike]) -> Op:
        """The op with the symbols in its attributes replaced; itself where it has none."""
        if type(self) not in _SYMBOLIC:
            return self
        return map_attribute_dims(self, lambda dim: dims.substitute(dim, values))

    def has_symbols(self) -> bool:
        """Whether an attribute depends on a symbol, so that the op means something only under a binding."""
        if type(self) not in _SYMBOLIC:
            return False
        met: list[DimLike] = []
        map_attribute_dims(self, lambda dim: (met.append(dim), dim)[1])  # type: ignore[func-returns-value]
        return bool(met)

    def attributes(self) -> dict[str, Any]:
        """Attribute names and values, in the order of declaration."""
        return {name: getattr(self, name) for name in _attribute_names(type(self))}  # type: ignore[arg-type]


_SYMBOLIC: set[type[Op]] = set()


@cache
def _attribute_names(cls: type[Op]) -> tuple[str, ...]:
    return tuple(entry.name for entry in dataclasses.fields(cls))  # type: ignore[arg-type]


def _check_dims(shape: Dims) -> None:
    if len(shape) > MAX_RANK:
        raise ModelError(f"the result has {len(shape)} axes; a tensor may have {MAX_RANK}")
    for axis, size in enumerate(shape):
        if isinstance(size, int) and size < 0:
            raise ModelError(f"axis {axis} of the result has the negative size {size}")


def _holds_dims(value: Any) -> bool:
    return any(map(_holds_dims, value)) if isinstance(value, tuple) else isinstance(value, Dim)


def _plain(value: Known) -> Array:
    """An object array of plain numbers as a numeric array."""
    return np.array(value.tolist(), dtype=None if value.size else np.int64).reshape(value.shape)


def register(cls: C) -> C:
    """Class decorator: enters an op under its name. Ops whose attributes may hold dims are noted for `bind`."""
    OPS.add(cls.name, cls)
    hints = " ".join(str(entry.type) for entry in dataclasses.fields(cls))  # type: ignore[arg-type]
    if "Dim" in hints or "Type" in hints.replace("DType", ""):
        _SYMBOLIC.add(cls)
    return cls


def op_class(name: str) -> type[Op]:
    """The op registered as `name`; raises ArgosyError with a suggestion for an unknown one."""
    found = OPS.get(name)
    if found is None:
        known = sorted(key for key, _ in OPS.items())
        raise ArgosyError(f"there is no op {name!r}", hint=did_you_mean(name, known) or "argosy ops lists them")
    return found


def map_attribute_dims(op: Op, change: Callable[[DimLike], DimLike]) -> Op:
    """The op with `change` applied to every symbolic dim in its attributes; itself where nothing changes."""
    changed: dict[str, Any] = {}
    for name, value in op.attributes().items():
        new = _map_value(value, change)
        if new is not value:
            changed[name] = new
    return dataclasses.replace(op, **changed) if changed else op  # type: ignore[type-var]


def _map_value(value: Any, change: Callable[[DimLike], DimLike]) -> Any:
    if isinstance(value, Dim):
        return change(value)
    if isinstance(value, tuple):
        mapped = tuple(_map_value(element, change) for element in value)
        return mapped if any(a is not b for a, b in zip(mapped, value, strict=True)) else value
    if isinstance(value, TensorType) and value.dims is not None:
        mapped_dims = _map_value(value.dims, change)
        return value if mapped_dims is value.dims else TensorType(value.dtype, mapped_dims)
    return value

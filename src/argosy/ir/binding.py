"""Binding: what a caller asks of the dims of a program's inputs, applied to their types."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.errors import UsageError
from argosy.ir.dim import Dim, DimLike, Symbol, substitute, symbol_dim
from argosy.ir.types import TensorType, Type, map_dims, type_symbols
from argosy.options import Dimensions
from argosy.registry import did_you_mean

__all__ = ["bind_types", "wanted_values"]


def wanted_values(inputs: Mapping[str, Type], wanted: Dimensions) -> dict[str, DimLike]:
    """What takes the place of each symbol: a number, or the symbol with other bounds.

    A shape that is given for one input binds its symbols in every input. Raises UsageError for an unknown
    symbol or input, and where a size contradicts the model.
    """
    symbols = {symbol.name: symbol for kind in inputs.values() for symbol in type_symbols(kind)}
    values: dict[str, DimLike] = {}
    for name, shape in wanted.shapes:
        _bind_shape(name, shape, inputs, values)
    if wanted.batch is not None:
        for kind in inputs.values():
            if isinstance(kind, TensorType) and kind.dims and isinstance(kind.dims[0], Dim):
                for symbol in type_symbols(TensorType(kind.dtype, kind.dims[:1])):
                    values.setdefault(symbol.name, wanted.batch)
    for request in wanted.dims:
        if request.name not in symbols:
            known = sorted(symbols)
            raise UsageError(
                f"the model's inputs have no dim called {request.name!r}",
                hint=did_you_mean(request.name, known) or f"they have: {', '.join(known) or 'fixed dims only'}",
            )
        if request.binds:
            values[request.name] = request.values[0]
        elif not request.values:
            values[request.name] = symbol_dim(Symbol(request.name, request.lower, request.upper))
    return values


def bind_types(inputs: Mapping[str, Type], wanted: Dimensions) -> dict[str, Type]:
    """The types of the inputs with dims bound or bounded as asked; raises UsageError as `wanted_values` does."""
    values = wanted_values(inputs, wanted)
    bound = {name: map_dims(kind, lambda dim: substitute(dim, values)) for name, kind in inputs.items()}
    given = dict(wanted.shapes)
    return {
        name: TensorType(kind.dtype, given[name]) if name in given and isinstance(kind, TensorType) else kind
        for name, kind in bound.items()
    }


def _bind_shape(name: str, shape: tuple[int, ...], inputs: Mapping[str, Type], values: dict[str, DimLike]) -> None:
    kind = inputs.get(name)
    if not isinstance(kind, TensorType):
        raise UsageError(
            f"the model has no tensor input called {name!r}",
            hint=did_you_mean(name, list(inputs)) or f"its inputs: {', '.join(inputs)}",
        )
    if kind.dims is None:
        return
    if len(kind.dims) != len(shape):
        raise UsageError(
            f"the shape {list(shape)} has rank {len(shape)}, the model says {kind}", where=f"input {name!r}"
        )
    for dim, size in zip(kind.dims, shape, strict=True):
        if isinstance(dim, int):
            if dim != size:
                raise UsageError(f"the shape {list(shape)} contradicts the model's {kind}", where=f"input {name!r}")
            continue
        symbols = type_symbols(TensorType(kind.dtype, (dim,)))
        if len(symbols) == 1 and dim == symbol_dim(next(iter(symbols))):
            symbol = next(iter(symbols))
            if values.setdefault(symbol.name, size) != size:
                raise UsageError(f"the dim {symbol.name} is asked to be {values[symbol.name]} and {size}")

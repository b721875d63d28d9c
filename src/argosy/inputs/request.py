"""What is asked of the inputs, and making them: files first, then generated ones of sizes that fit."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from argosy.errors import ArgosyError, ArtifactError, UsageError
from argosy.inputs.files import read_folder, read_named, read_value
from argosy.inputs.generated import generate, generate_values
from argosy.inputs.need import Need
from argosy.inputs.ranges import find_ranges
from argosy.ir.dim import Symbol, evaluate, lone_symbol
from argosy.ir.program import Program
from argosy.ir.types import OptionalType, SequenceType, TensorType, Type, type_symbols
from argosy.options import Dimensions
from argosy.registry import did_you_mean

__all__ = ["InputRequest", "Inputs", "make_inputs"]

log = logging.getLogger("argosy.inputs")


@dataclass(frozen=True, slots=True)
class InputRequest:
    """Where inputs come from. Names are those of inputs, or `@0` for the first one.

    `files` by input; `shapes` of generated inputs; `source` a folder or an .npz file with several;
    `fills` numbers that fill an input; `ranges` (least, greatest) of generated ones.
    """

    files: tuple[tuple[str, str], ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    source: str | None = None
    fills: tuple[tuple[str, int], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """Values by input, where each comes from in words, and the sizes that were chosen for lack of a better one."""

    values: dict[str, Any]
    origins: dict[str, str]
    chosen: dict[str, int]

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Sizes that nobody asked for are the likely cause of an error in the block: its hint says so."""
        try:
            yield
        except ArgosyError as error:
            if self.chosen:
                told = ", ".join(f"{name} = {size}" for name, size in self.chosen.items())
                why = f"the inputs were generated with {told}; --dim NAME=SIZE chooses other sizes"
                error.hint = f"{error.hint}\n{why}" if error.hint else why
            raise


def make_inputs(
    types: Mapping[str, Type],
    request: InputRequest,
    dims: Dimensions | None = None,
    *,
    case: int = 0,
    given: Mapping[str, Any] | None = None,
    program: Callable[[], Program] | None = None,
) -> Inputs:
    """The inputs for a model that takes `types`. Those in `given` are arrays already.

    `program` gives the model's program where there is one: what that needs of an input (indices, lengths, …) is the
    range of it, unless the request has one.

    Symbols get their sizes from the inputs that are given, then from `dims` (of several values, those in
    turn by `case`; of a range, its ends and then sizes between), and last their least size, at least 1, with a warning.
    Raises UsageError for names that the model does not have and files that do not fit.
    """
    dims = dims or Dimensions()
    seed = request.seed + case
    held, origins = _given(types, request)
    for name in given or {}:
        origins[_name(name, types)] = "given"
    given = {**held, **(given or {})}
    fills = {_name(name, types): value for name, value in request.fills}
    ranges = {_name(name, types): (low, high) for name, low, high in request.ranges}
    shapes = {_name(name, types): shape for name, shape in (*dims.shapes, *request.shapes)}
    symbols = {symbol.name: symbol for kind in types.values() for symbol in sorted(type_symbols(kind), key=str)}
    sizes = _sizes_of(types, given, shapes)
    _ask(types, dims, symbols, sizes, case, seed)
    chosen = {name: max(symbol.lower, 1) for name, symbol in symbols.items() if name not in sizes}
    missing = [name for name in types if name not in given]
    if chosen and missing and case == 0:
        told = ", ".join(f"{name} = {size}" for name, size in chosen.items())
        log.warning("inputs are generated with %s; --dim chooses other sizes", told)
    sizes.update(chosen)
    unasked = [name for name in missing if name not in fills and name not in ranges]
    needs = _needs(program, sizes) if unasked and program is not None else {}
    values: dict[str, Any] = {}
    for name, kind in types.items():
        if name in given:
            values[name] = given[name]
            continue
        shape = shapes.get(name, ()) if name in shapes else _shape(name, kind, sizes)
        if name in unasked and name in needs:
            values[name], told = _as_needed(name, kind, shape, seed, needs[name])
        else:
            values[name] = generate(name, kind, shape, seed=seed, fill=fills.get(name), bounds=ranges.get(name))
            told = "" if name not in ranges else "{:g}..{:g}: as asked".format(*ranges[name])
        origins[name] = f"filled with {fills[name]}" if name in fills else f"generated, seed {seed}"
        origins[name] += f", {told}" if told and name not in fills else ""
    return Inputs(values, origins, chosen if missing else {})


def _needs(program: Callable[[], Program], sizes: Mapping[str, int]) -> dict[str, Need]:
    """What the program needs of inputs; nothing is known of one whose weights are elsewhere."""
    try:
        return find_ranges(program().main, sizes)
    except ArtifactError as error:
        log.info("inputs are generated without the program: %s", error)
        return {}


def _as_needed(name: str, kind: Type, shape: Sequence[int], seed: int, need: Need) -> tuple[Any, str]:
    """A value that the program takes, and its range in words; without words where the need leaves no range."""
    tensor = _tensor_in(kind)
    if need.values is not None and isinstance(kind, TensorType) and len(need.values) == math.prod(shape):
        told = ", ".join(f"{value:g}" for value in need.values)
        return generate_values(kind, shape, need.values), f"[{told}]: {need.reason}"
    bounds = None if tensor is None else need.bounds(tensor.dtype)
    value = generate(name, kind, shape, seed=seed, bounds=bounds)
    return value, "" if bounds is None else f"{bounds[0]:.15g}..{bounds[1]:.15g}: {need.reason}"


def _given(types: Mapping[str, Type], request: InputRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs that files hold, and where each comes from."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if request.source is not None:
        path = Path(request.source)
        if path.is_dir():
            values.update(read_folder(path, types))
        else:
            values.update({_name(name, types): value for name, value in read_named(path, types).items()})
        origins.update(dict.fromkeys(values, request.source))
    for asked, file in request.files:
        name = _name(asked, types)
        values[name] = read_value(Path(file), name, types[name])
        origins[name] = file
    return values, origins


def _name(asked: str, types: Mapping[str, Type]) -> str:
    """The input that `asked` means: its name, or `@` and its index."""
    if asked in types:
        return asked
    if asked.startswith("@") and asked[1:].isdigit() and int(asked[1:]) < len(types):
        return list(types)[int(asked[1:])]
    if asked.startswith("@") and asked[1:] in types:
        return asked[1:]
    summary = ", ".join(f"{name}: {kind}" for name, kind in types.items())
    raise UsageError(
        f"the model has no input {asked!r}", hint=did_you_mean(asked, list(types)) or f"it takes: {summary}"
    )


def _sizes_of(
    types: Mapping[str, Type], given: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """The sizes of symbols that the shapes of given inputs tell."""
    sizes: dict[str, int] = {}
    for name, kind in types.items():
        tensor = _tensor_in(kind)
        if tensor is None or tensor.dims is None or (name not in given and name not in shapes):
            continue
        value = given.get(name)
        shape = shapes[name] if name not in given else np.shape(value) if isinstance(value, np.ndarray) else ()
        if name not in given and len(shape) != len(tensor.dims):
            raise UsageError(f"the shape {list(shape)} does not fit {kind}", where=f"input {name!r}")
        for dim, size in zip(tensor.dims, shape, strict=False):
            symbol = lone_symbol(dim)
            if symbol is not None:
                sizes.setdefault(symbol.name, size)
    return sizes


def _ask(
    types: Mapping[str, Type],
    dims: Dimensions,
    symbols: Mapping[str, Symbol],
    sizes: dict[str, int],
    case: int,
    seed: int,
) -> None:
    """Add the sizes that are asked for, of symbols that have none yet."""
    for request in dims.dims:
        if request.name in symbols and request.name not in sizes:
            sizes[request.name] = _pick(request.values, request.lower, request.upper, case, seed)
    if dims.batch is not None:
        for kind in types.values():
            tensor = _tensor_in(kind)
            if tensor is not None and tensor.dims:
                symbol = lone_symbol(tensor.dims[0])
                if symbol is not None:
                    sizes.setdefault(symbol.name, dims.batch)


def _pick(values: Sequence[int], lower: int, upper: int | None, case: int, seed: int) -> int:
    if values:
        return values[case % len(values)]
    ends = (max(lower, 1), upper if upper is not None else max(lower, 1))
    if case < 2:
        return ends[case]
    return int(np.random.default_rng(seed).integers(ends[0], ends[1], endpoint=True))


def _shape(name: str, kind: Type, sizes: Mapping[str, int]) -> tuple[int, ...]:
    tensor = _tensor_in(kind)
    if tensor is None:
        return ()
    if tensor.dims is None:
        alone = isinstance(kind, TensorType)
        way = f"--input-shape {name}=1,3,224,224" if alone else f"--input {name}=FILE.npz, with '{name}[0]', …"
        raise UsageError("the model does not tell its rank", where=f"input {name!r}", hint=f"give {way}")
    return tuple(evaluate(dim, sizes) for dim in tensor.dims)


def _tensor_in(kind: Type) -> TensorType | None:
    while isinstance(kind, (OptionalType, SequenceType)):
        kind = kind.element
    return kind if isinstance(kind, TensorType) else None

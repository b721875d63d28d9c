"""The compiler's front door: model in, artifact out."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.artifact.artifact import PRODUCER, Artifact, CompiledVariant
from argosy.artifact.encode import encode_program, encode_symbols
from argosy.artifact.manifest import SCHEMA, SLIM, Manifest, ModelInfo, ValueInfo, variant_key
from argosy.artifact.program import ProgramRecord
from argosy.drivers.machine import Machine, this_machine
from argosy.errors import ArgosyError, BranchError, CompileError, UsageError
from argosy.host_cpu import usable_cores
from argosy.ir.binding import wanted_values
from argosy.ir.dim import Symbol, lone_symbol
from argosy.ir.hashing import model_hash
from argosy.ir.literal import Literal
from argosy.ir.module import Module
from argosy.ir.program import Program
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.options import CompileOptions, Dimensions, DimValue
from argosy.passes.bind_dims import BindDims
from argosy.passes.manager import PassManager, Phase
from argosy.reproducers import Case, compile_case, import_case, leaving_reproducer
from argosy.targets.base import Lowered, Target, Workshop, find_arch, find_archs, make_target, target_kind
from argosy.targets.left_out import check_left_out

__all__ = [
    "CompileOptions", "Target", "artifact_of_module", "compile", "compile_each", "compile_program", "compile_variants",
    "compile_what_can_be", "load_onnx", "machine_targets", "make_target", "resolve_targets", "special_sizes",
]  # fmt: skip

log = logging.getLogger("argosy.compile")

_MOST_SPECIALISED: Final = 64
"""Combinations of sizes that one artifact gets code for."""
_AT_ONCE: Final = 4
"""Variants that are lowered side by side."""
_Made = list[tuple[Mapping[str, int], Lowered]]
"""What a target made for each set of sizes; of those for every size, the set is empty."""


def load_onnx(
    model: str | Path | bytes | Program | Any,
    *,
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    skip_unknown: bool = False,
    strict: bool = False,
) -> Program:
    """The program of an ONNX model: a path, bytes, a ModelProto, or a Program (given back, with dims bound).

    `dims` binds or bounds symbolic dims: {"N": 4}, {"N": "1..512"}; several values (for specialised code) leave
    the program as it is. `skip_unknown` turns unsupported nodes into placeholders, good for looking at the
    rest. `strict` refuses what is else accepted with a warning. Raises ModelError, and UnsupportedError with
    every unsupported node.
    """
    wanted = Dimensions.of(dims)
    with leaving_reproducer(lambda: import_case(model, wanted, skip_unknown=skip_unknown, strict=strict)):
        return _load(model, wanted, skip_unknown=skip_unknown, strict=strict)


def _load(model: Any, wanted: Dimensions, *, skip_unknown: bool, strict: bool) -> Program:
    if isinstance(model, Program):
        return _bind_program(model, wanted)
    from argosy.frontends.onnx import ImportOptions, load  # noqa: PLC0415 - a program needs no ONNX

    try:
        return load(model, ImportOptions(wanted, skip_unknown, strict))
    except BranchError:
        if wanted == Dimensions():
            raise
        # With these sizes the branch can't run, but only the run knows whether it is taken: it stays general.
        return _bind_program(load(model, ImportOptions(skip_unknown=skip_unknown, strict=strict)), wanted)


def _bind_program(program: Program, wanted: Dimensions) -> Program:
    """The program with dims bound or bounded as asked."""
    values = wanted_values(program.inputs, wanted)
    if not values:
        return program
    main = PassManager((Phase("bind", (BindDims.of(values),)),)).run(program.main)
    return dataclasses.replace(program, main=main)


def compile(  # noqa: A001 - the field's word, and its usual options
    model: str | Path | bytes | Program | Any,
    *,
    targets: Sequence[str | Target] = ("native",),
    precision: str = "fp32",
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    strict: bool = False,
    accuracy: str = "standard",
    allow_tf32: bool = False,
    fast_math: bool = False,
    mode: str = "balanced",
    weights: str = "embed",
    slim: bool = False,
    debug: bool = False,
    jobs: int | None = None,
    without: Sequence[str] = (),
) -> Artifact:
    """Compile a model (a path, bytes, ModelProto or Program) for `targets` into one artifact.

    `targets` are arch names as `--arch` takes them, or targets of `make_target`. `weights` says what `save`
    does with them by default, `without` which parts of the compiler to leave out (see CompileOptions). Raises
    ModelError, UsageError and CompileError. No device is needed or asked, but for `native`.
    """
    options = CompileOptions(
        precision, Dimensions.of(dims), strict, accuracy, allow_tf32, fast_math, mode, slim, debug, jobs, tuple(without)
    )
    chosen = resolve_targets(targets)
    program = load_onnx(model, dims=options.dims, strict=strict)
    return compile_program(program, chosen, options, weights=weights)


def resolve_targets(names: Sequence[str | Target]) -> tuple[Target, ...]:
    """Targets for arch names, without repetitions. Raises UsageError for an unknown name, or for none at all."""
    found: dict[Target, None] = {}
    for name in names:
        for part in name.split(",") if isinstance(name, str) else (name,):
            found.update(dict.fromkeys(_named(part)))
    if not found:
        raise UsageError("no arch is given", hint="for example --arch ref")
    return tuple(found)


def _named(part: str | Target) -> Sequence[Target]:
    """The targets that one name means; a target means itself."""
    if isinstance(part, Target):
        return (part,)
    return machine_targets(this_machine()) if part.strip() == "native" else find_archs(part.strip())


def machine_targets(machine: Machine) -> tuple[Target, ...]:
    """What a machine runs best: each GPU that its drivers report, then its CPU level.

    What the compiler is not installed for is left out, and said; without code for the CPU the reference remains.
    """
    gpus, cpu = ([*kind.for_machine(machine)] for kind in (target_kind("gpu"), target_kind("cpu")))
    return tuple(dict.fromkeys((*gpus, *(cpu or [find_arch("ref")]))))


def compile_program(
    program: Program, targets: Sequence[Target], options: CompileOptions, *, weights: str = "embed"
) -> Artifact:
    """Compile a program for targets that were resolved already; see `compile`."""
    built = _Build(program, options)
    for target, made in _attempts(program, targets, options):
        if isinstance(made, ArgosyError):
            raise made
        built.add(target, made)
    return built.artifact(weights)


def compile_what_can_be(
    program: Program, targets: Sequence[Target], options: CompileOptions, *, weights: str = "embed"
) -> tuple[Artifact, dict[Target, ArgosyError]]:
    """One artifact for the targets that a program compiles for, and why it does not for the others.

    Raises the first of these errors where nothing is left.
    """
    built = _Build(program, options)
    failures: dict[Target, ArgosyError] = {}
    for target, made in _attempts(program, targets, options):
        if isinstance(made, ArgosyError):
            failures[target] = made
        else:
            built.add(target, made)
    if targets and len(failures) == len(targets):
        raise next(iter(failures.values()))
    return built.artifact(weights), failures


def compile_each(
    program: Program, targets: Sequence[Target], options: CompileOptions, *, weights: str = "embed"
) -> Iterator[tuple[Target, Artifact | ArgosyError]]:
    """An artifact for each target, or why there is none, in the order of the targets and as they are ready."""
    encoded = _encoded(program, options)
    for target, made in _attempts(program, targets, options):
        if isinstance(made, ArgosyError):
            yield target, made
            continue
        built = _Build(program, options, encoded)
        built.add(target, made)
        yield target, built.artifact(weights)


def _attempts(
    program: Program, targets: Sequence[Target], options: CompileOptions
) -> Iterator[tuple[Target, _Made | ArgosyError]]:
    """What each target made for each set of sizes, or the error that kept it from that; the others go on."""
    sizes = ({}, *special_sizes(program, options))
    wanted = [(target, dims) for target in targets if target.needs_variant for dims in sizes]
    with Workshop(options.jobs) as workshop:
        results = _lowered(program, wanted, options, workshop)
        for target in targets:
            mine = [(dims, result) for (other, dims), result in zip(wanted, results, strict=True) if other is target]
            made: _Made | ArgosyError
            try:
                made = [(dims, result()) for dims, result in mine]
            except ArgosyError as error:
                made = error
            yield target, made


def compile_variants(
    program: Program, wanted: Sequence[tuple[Target, Mapping[str, int]]], options: CompileOptions
) -> Iterator[Lowered]:
    """What each target makes for the sizes beside it, of any where there are none, in order and as they are ready."""
    with Workshop(options.jobs) as workshop:
        results = _lowered(program, wanted, options, workshop)
        for (_, dims), result in zip(wanted, results, strict=True):
            lowered = result()
            yield dataclasses.replace(lowered, variant=_for_sizes(lowered.variant, dims))


def artifact_of_module(program: Program, target: Target, options: CompileOptions) -> tuple[Artifact, Lowered]:
    """The artifact of a program that has gone through the passes of a target already, and what the target made."""
    with Workshop(options.jobs) as workshop:
        lowered = target.lower(program.main, options, workshop)
    built = _Build(program, options)
    built.add(target, [({}, lowered)])
    return built.artifact("embed"), lowered


def _for_sizes(variant: CompiledVariant, dims: Mapping[str, int]) -> CompiledVariant:
    """The variant, saying which sizes it is for."""
    if not dims:
        return variant
    record = msgspec.structs.replace(variant.record, dims=dict(dims), words=f"{variant.record.words}, {_told(dims)}")
    return msgspec.structs.replace(variant, record=msgspec.structs.replace(record, key=variant_key(record)))


def _lowered(
    program: Program, wanted: Sequence[tuple[Target, Mapping[str, int]]], options: CompileOptions, workshop: Workshop
) -> list[Callable[[], Lowered]]:
    """What each target makes of the program for the sizes, by functions that wait for it.

    Targets that share tools are lowered side by side, so that the tools have work, and passes run once for all targets
    that have the same ones.
    """
    check_left_out([target for target, _ in wanted], options)
    piped: list[tuple[tuple[Phase, ...], Module | ArgosyError]] = []
    threads = workshop.tool(_lowering_threads)
    found: list[Callable[[], Lowered]] = []
    for target, dims in wanted:
        log.info("compiling for %s%s", target.arch, f", {_told(dims)}" if dims else "")
        phases = target.phases(options, dims)
        case = _case(program, target, options)
        module = next((made for known, made in piped if known == phases), None)
        if module is None:
            module = _piped(program, phases, options, case)
            piped.append((phases, module))
        if isinstance(module, ArgosyError):
            found.append(partial(_fail, module))
            continue
        work = partial(_lower, target, module, options, workshop, case)
        found.append(threads.submit(work).result if target.shares_tools else work)
    return found


def _piped(
    program: Program, phases: tuple[Phase, ...], options: CompileOptions, case: Callable[[], Case] | None
) -> Module | ArgosyError:
    """The module after the passes, or why there is none; targets with other passes may have one all the same."""
    try:
        with leaving_reproducer(case):
            return PassManager(phases, without_rules=options.leaves_out("rule")).run(program.main)
    except ArgosyError as error:
        return error


def _case(program: Program, target: Target, options: CompileOptions) -> Callable[[], Case] | None:
    """What a failure leaves behind; None where that is not wanted."""
    return partial(compile_case, program, (target,), options) if options.reproducers else None


def _fail(error: ArgosyError) -> Lowered:
    raise error


def _lower(
    target: Target, module: Module, options: CompileOptions, workshop: Workshop, case: Callable[[], Case] | None
) -> Lowered:
    with leaving_reproducer(case):
        return target.lower(module, options, workshop)


def _told(dims: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in dims.items())


@contextmanager
def _lowering_threads(jobs: int | None) -> Iterator[ThreadPoolExecutor]:
    """Threads that lower; an exception doesn't wait for them, so that it can end the tools that they wait for."""
    threads = ThreadPoolExecutor(min(jobs or usable_cores(), _AT_ONCE), thread_name_prefix="lower")
    try:
        yield threads
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()


def special_sizes(program: Program, options: CompileOptions) -> list[dict[str, int]]:
    """The dims of each specialised variant: every combination of the sizes that are asked for."""
    wanted = options.dims.specialised
    kinds = [kind for kind in program.inputs.values() if isinstance(kind, TensorType)]
    symbols = [lone_symbol(dim) for kind in kinds for dim in kind.dims or ()]
    lone = sorted({symbol.name for symbol in symbols if symbol is not None})
    for request in wanted:
        if request.name not in lone:
            raise UsageError(
                f"no input has a dim that is {request.name!r} alone, so no run could tell its size",
                hint=f"such dims: {', '.join(lone) or 'none'}; a single size binds any dim",
            )
    if math.prod(len(request.values) for request in wanted) > _MOST_SPECIALISED:
        raise UsageError(f"--dim asks for more than {_MOST_SPECIALISED} combinations of sizes")
    choices = [[(request.name, size) for size in dict.fromkeys(request.values)] for request in wanted]
    return [dict(choice) for choice in itertools.product(*choices)] if wanted else []


_Encoded = tuple[ProgramRecord | None, Mapping[str, Literal], str]
"""What every artifact of a program holds, whatever it is compiled for: record, weights, and the model's hash."""


def _encoded(program: Program, options: CompileOptions) -> _Encoded:
    with leaving_reproducer(_case(program, find_arch("ref"), options)):
        record, weights = (None, {}) if options.slim else encode_program(program)
        return record, weights, model_hash(program)


class _Build:
    """One artifact in the making: variants come one by one, weights are collected once."""

    def __init__(self, program: Program, options: CompileOptions, encoded: _Encoded | None = None) -> None:
        self._program = program
        self._options = options
        self._variants: list[CompiledVariant] = []
        self._record, weights, self._hash = encoded or _encoded(program, options)
        self._weights = dict(weights)

    def add(self, target: Target, made: _Made) -> None:
        """Add what a target made."""
        for dims, lowered in made:
            self._add(target, dims, lowered)

    def _add(self, target: Target, dims: Mapping[str, int], lowered: Lowered) -> None:
        """Add a variant; where `dims` are given, one for these sizes alone."""
        variant = _for_sizes(lowered.variant, dims)
        key = variant.record.key
        if any(key == other.record.key for other in self._variants):
            raise CompileError(f"two of the targets give the same variant: {variant.record.words}")
        self._variants.append(variant)
        self._weights.update(lowered.weights)

    def artifact(self, weights: str) -> Artifact:
        """The artifact with what was added."""
        if self._options.slim and not self._variants:
            raise UsageError("a slim artifact needs a variant", hint="ref has none: leave out --slim, or add an arch")
        program = self._program
        manifest = Manifest(
            SCHEMA,
            PRODUCER,
            ModelInfo(program.metadata.get("graph", ""), self._hash),
            inputs=tuple(_value_info(name, kind) for name, kind in program.inputs.items()),
            outputs=tuple(_value_info(name, kind) for name, kind in program.outputs.items()),
            features=(SLIM,) if self._options.slim else (),
            symbols=encode_symbols(_symbols(program)),
            variants=tuple(variant.record for variant in self._variants),
            options={"precision": self._options.precision},
        )
        return Artifact(manifest, program=self._record, compiled=self._variants, weights=self._weights, storage=weights)


def _symbols(program: Program) -> list[Symbol]:
    kinds = (*program.inputs.values(), *program.outputs.values())
    found = {symbol.name: symbol for kind in kinds for symbol in type_symbols(kind)}
    return list(found.values())


def _value_info(name: str, kind: Type) -> ValueInfo:
    dims = None
    if isinstance(kind, TensorType) and kind.dims is not None:
        dims = tuple(dim if isinstance(dim, int) else str(dim) for dim in kind.dims)
    return ValueInfo(name, str(kind), dims)

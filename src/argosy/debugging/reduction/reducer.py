"""`reduce_model`: looks for a failure, and for a small model that fails in the same way."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.comparison import is_quantised
from argosy.compiler import resolve_targets
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.checks import Check, CommandCheck, Counted, Verification, takes_driver
from argosy.debugging.reduction.child import Child, EndedError
from argosy.debugging.reduction.nodes import graphs_of, nodes_of
from argosy.debugging.reduction.outcome import Outcome
from argosy.debugging.reduction.reduced import Reduced
from argosy.debugging.reduction.script import command_script, verification_script
from argosy.errors import ArgosyError, BranchError, UsageError
from argosy.frontends.onnx import load
from argosy.frontends.onnx.external_data import ExternalData
from argosy.frontends.onnx.node import node_label
from argosy.frontends.onnx.protos import read_model, read_type
from argosy.inputs import InputRequest, make_inputs
from argosy.ir.binding import wanted_values
from argosy.ir.program import Program
from argosy.ir.types import Type
from argosy.options import CompileOptions, Dimensions, DimValue
from argosy.targets.base import Target
from argosy.verification import Tolerance

if TYPE_CHECKING:
    import onnx

__all__ = ["reduce_model"]

log = logging.getLogger("argosy.reduce")


def reduce_model(
    model: str | Path | bytes | Any,
    *,
    targets: Sequence[str | Target] = ("native",),
    device: str | None = None,
    exact: bool = False,
    against: str = "ref",
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    inputs: Mapping[str, Any] | InputRequest | None = None,
    cases: int = 1,
    tolerance: Tolerance | None = None,
    options: CompileOptions | None = None,
    check: Check | str | None = None,
    checks: int = 200,
    seconds: float = 300.0,
) -> Reduced | None:
    """A small model that fails as `model` (a path, bytes or ModelProto) does; None where that does not fail.

    Failing is what `argosy.verify` with the same arguments finds: wrong numbers, an error, a crash, or no end within
    `seconds`. With a `check`, a function or a command line (see `CommandCheck`), failing is what that says. At most
    `checks` models are tried. Raises UsageError where the reference is a file, which has no answer for parts of the
    model, and where the check does not hold for the model itself.
    """
    if isinstance(model, Program):
        raise UsageError("the ONNX model is needed", hint="give the model itself, not a program or artifact")
    if against.endswith(".npz"):
        raise UsageError(f"{against} has no outputs for parts of the model", hint="use --against ref or onnxruntime")
    if checks < 1 or cases < 1:
        raise UsageError(f"checks is {checks} and cases is {cases}, expected at least 1")
    proto, external, name = read_model(model)
    from argosy.debugging.reduction.capture import Reference  # noqa: PLC0415 - needs the onnx package
    from argosy.debugging.reduction.steps import reduce_case  # noqa: PLC0415

    wanted = Dimensions.of(dims)
    asked = resolve_targets(targets)
    with Child(seconds, fresh=takes_driver(asked, device)) as child:
        try:
            start = _start(proto, external, child, inputs, wanted, cases)
        except ArgosyError as error:
            raise error.at(name) from None
        candidates = [Case(start.model, values) for values in start.inputs]
        made = dataclasses.replace(options or CompileOptions(), dims=start.dims)
        # The rule for the whole is that for its parts.
        allowed = tolerance or Tolerance(quantised=start.quantised)
        verification = Verification(asked, device, exact, against, allowed, made)
        if check is None:
            found = _by_verification(candidates, verification, child)
        else:
            found = _by_check(candidates, CommandCheck.of(check, seconds) if isinstance(check, str) else check)
        if found is None:
            return None
        holds = Counted(found.check, checks)
        if not holds(found.case):
            raise UsageError(
                "the failure does not show again on the same inputs",
                where=name,
                hint="what comes and goes can't be reduced",
            )
        case = reduce_case(found.case, holds, Reference(child))
        if check is None:
            verification = verification.of_model(case.model)
            script = verification_script(verification, found.outcome, seconds)
            remains = "" if found.outcome.spoils else verification.outcome_in(child, case.model, case.inputs).told
        else:
            script, remains = command_script(found.check), ""
    return Reduced(
        found.outcome.kind,
        found.outcome.told,
        sum(1 for _ in nodes_of(proto.graph)) + sum(len(function.node) for function in proto.functions),
        _labels(proto, case.model),
        holds.spent,
        holds.exhausted,
        case.model,
        case.inputs,
        script,
        remains,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A case that fails, how it does, and what tells so."""

    case: Case
    outcome: Outcome
    check: Check


def _by_verification(cases: Iterable[Case], verification: Verification, child: Child) -> _Found | None:
    """The first case for which verifying fails."""
    for case in cases:
        outcome = verification.outcome_in(child, case.model, case.inputs)
        if outcome.failed:
            return _Found(case, outcome, verification.fails_like(outcome, child))
    return None


def _by_check(cases: Iterable[Case], check: Check) -> _Found:
    """The first case for which the user's check holds. Raises UsageError where there is none."""
    for case in cases:
        if check(case.model, case.inputs):
            return _Found(case, Outcome("check"), check)
    raise UsageError(
        "the check does not hold for the model itself", hint="it must exit with 0 where a model shows what you look for"
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """The model to begin with, what is asked of the dims that it has, sets of inputs, and whether it is quantised."""

    model: onnx.ModelProto
    dims: Dimensions
    inputs: Sequence[Mapping[str, Any]]
    quantised: bool


def _start(
    proto: onnx.ModelProto,
    external: ExternalData,
    child: Child,
    inputs: Mapping[str, Any] | InputRequest | None,
    dims: Dimensions,
    count: int,
) -> _Start:
    """The model with `dims` bound, and the sets of inputs that `argosy.verify` makes.

    Where a branch can't run with these sizes, which may never be taken, the model stays general, as in `load_onnx`.
    """
    from argosy.debugging.reduction.prepare import prepare  # noqa: PLC0415 - needs the onnx package

    model, left = prepare(proto, external, dims), dims.unbound
    try:
        made, quantised = _inputs(model, child, inputs, dims, count, bound=left != dims)
    except BranchError:
        model = prepare(proto, external, Dimensions())
        left = _numbers(model, dims)
        made, quantised = _inputs(model, child, inputs, dims, count, bound=False)
    return _Start(model, left, made, quantised)


def _inputs(
    model: onnx.ModelProto,
    child: Child,
    inputs: Mapping[str, Any] | InputRequest | None,
    dims: Dimensions,
    count: int,
    *,
    bound: bool,
) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """The sets of inputs, and whether the model is quantised. Raises BranchError where bound dims contradict it.

    The model is read in a child: where that crashes or hangs, no more is known of it than the types of its inputs.
    """
    made = partial(_made_inputs, model.SerializeToString(), inputs, dims, count)
    try:
        return child.run(partial(made, bound=bound))
    except EndedError as ended:
        log.warning("reading the model: %s; its inputs are made for their types alone", ended)
        return made(reads=False)


def _made_inputs(
    raw: bytes,
    inputs: Mapping[str, Any] | InputRequest | None,
    dims: Dimensions,
    count: int,
    *,
    reads: bool = True,
    bound: bool = False,
) -> tuple[Sequence[Mapping[str, Any]], bool]:
    import onnx  # noqa: PLC0415 - an optional extra

    model = onnx.ModelProto.FromString(raw)
    program = _program(model, bound=bound) if reads else None
    request = inputs if isinstance(inputs, InputRequest) else InputRequest()
    given = None if isinstance(inputs, InputRequest) else inputs
    held = None if program is None else lambda: program
    types = _types(model)
    made = [make_inputs(types, request, dims, case=n, given=given, program=held).values for n in range(count)]
    return made, program is not None and is_quantised(program)


def _types(model: onnx.ModelProto) -> dict[str, Type]:
    return {entry.name: read_type(entry.type, entry.name, f"input {entry.name!r}") for entry in model.graph.input}


def _numbers(model: onnx.ModelProto, dims: Dimensions) -> Dimensions:
    """What is asked of the dims of a model that has them all, by their names alone."""
    values = wanted_values(_types(model), dims)
    bound = {name: value for name, value in values.items() if isinstance(value, int)}
    return Dimensions((*Dimensions.of(bound).dims, *dims.unbound.dims))


def _program(model: onnx.ModelProto, *, bound: bool) -> Program | None:
    """The program of the whole; None where the model is refused, which may be what is to be reduced."""
    try:
        return load(model)
    except ArgosyError as error:
        if bound and isinstance(error, BranchError):
            raise
        log.debug("nothing is known of the whole model: %s", error)
        return None


def _labels(whole: onnx.ModelProto, part: onnx.ModelProto) -> tuple[str, ...]:
    """The nodes of a part by name and op, with those in bodies; one without a name as it is called in the whole."""
    known = {node.output[0]: node_label(node, i) for i, node in enumerate(whole.graph.node) if node.output}
    return tuple(_labelled(part.graph, known, ""))


def _labelled(graph: onnx.GraphProto, known: Mapping[str, str], prefix: str) -> Iterator[str]:
    for index, node in enumerate(graph.node):
        label = known.get(node.output[0], node_label(node, index))
        yield prefix + (label if label.startswith(f"{node.op_type} (") else f"{label} ({node.op_type})")
        for body in graphs_of(node):
            yield from _labelled(body, known, f"{prefix}{label}/")

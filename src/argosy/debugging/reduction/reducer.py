"""`reduce_model`: looks for a failure, and for a small model that fails in the same way."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.comparison import is_quantised
from argosy.compiler import resolve_targets
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.checks import Check, CommandCheck, Counted, Verification
from argosy.debugging.reduction.outcome import Outcome
from argosy.debugging.reduction.reduced import Reduced
from argosy.debugging.reduction.script import command_script, verification_script
from argosy.errors import ArgosyError, UsageError
from argosy.frontends.onnx import load
from argosy.frontends.onnx.node import node_label
from argosy.frontends.onnx.protos import read_model, read_type
from argosy.inputs import InputRequest, make_inputs
from argosy.ir.program import Program
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
    from argosy.debugging.reduction.prepare import inline_functions, prepare  # noqa: PLC0415 - needs the onnx package
    from argosy.debugging.reduction.steps import reduce_case  # noqa: PLC0415

    wanted = Dimensions.of(dims)
    try:
        prepared = prepare(proto, external, wanted)
    except ArgosyError as error:
        raise error.at(name) from None
    program = _program(prepared)
    candidates = _cases(prepared, program, inputs, wanted, cases)
    if check is None:
        made = dataclasses.replace(options or CompileOptions(), dims=wanted.unbound)
        # The rule for the whole is that for its parts.
        allowed = tolerance or Tolerance(quantised=program is not None and is_quantised(program))
        verification = Verification(resolve_targets(targets), device, exact, against, allowed, made)
        found = _by_verification(candidates, verification, seconds)
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
    inlined = inline_functions(prepared)
    whole = found.case if inlined is None else Case(inlined, found.case.inputs)
    case = reduce_case(whole if holds(whole) else found.case, holds)
    return Reduced(
        found.outcome.kind,
        found.outcome.told,
        len(proto.graph.node),
        _labels(proto, case.model),
        holds.spent,
        holds.exhausted,
        case.model,
        case.inputs,
        found.script,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A case that fails, how it does, what tells so, and the script that shows it."""

    case: Case
    outcome: Outcome
    check: Check
    script: str


def _by_verification(cases: Iterable[Case], verification: Verification, seconds: float) -> _Found | None:
    """The first case for which verifying fails. That is tried in a child, as it may crash."""
    for case in cases:
        outcome = verification.outcome_in_child(case.model, case.inputs, seconds)
        if outcome.failed:
            script = verification_script(verification, outcome, seconds)
            return _Found(case, outcome, verification.fails_like(outcome, seconds), script)
    return None


def _by_check(cases: Iterable[Case], check: Check) -> _Found:
    """The first case for which the user's check holds. Raises UsageError where there is none."""
    for case in cases:
        if check(case.model, case.inputs):
            return _Found(case, Outcome("check"), check, command_script(check))
    raise UsageError(
        "the check does not hold for the model itself", hint="it must exit with 0 where a model shows what you look for"
    )


def _cases(
    model: onnx.ModelProto,
    program: Program | None,
    inputs: Mapping[str, Any] | InputRequest | None,
    dims: Dimensions,
    count: int,
) -> Iterator[Case]:
    """The model with each of its sets of inputs, which are those of `argosy.verify`."""
    types = {entry.name: read_type(entry.type, entry.name, f"input {entry.name!r}") for entry in model.graph.input}
    request = inputs if isinstance(inputs, InputRequest) else InputRequest()
    given = None if isinstance(inputs, InputRequest) else inputs
    held = None if program is None else lambda: program
    for number in range(count):
        yield Case(model, make_inputs(types, request, dims, case=number, given=given, program=held).values)


def _program(model: onnx.ModelProto) -> Program | None:
    """The program of the whole; None where the model is refused, which may be what is to be reduced."""
    try:
        return load(model)
    except ArgosyError as error:
        log.debug("nothing is known of the whole model: %s", error)
        return None


def _labels(whole: onnx.ModelProto, part: onnx.ModelProto) -> tuple[str, ...]:
    """The nodes of a part by name and op; those without a name as they are called in the whole."""
    known = {node.output[0]: node_label(node, i) for i, node in enumerate(whole.graph.node) if node.output}
    labels = (known.get(node.output[0], node_label(node, i)) for i, node in enumerate(part.graph.node))
    ops = (node.op_type for node in part.graph.node)
    return tuple(
        label if label.startswith(f"{op} (") else f"{label} ({op})" for label, op in zip(labels, ops, strict=True)
    )

"""`argosy.verify`: runs the code and the reference on the same inputs, and compares."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy.artifact.artifact import Artifact
from argosy.comparison import Mismatch, is_quantised
from argosy.compiler import compile_program, load_onnx, resolve_targets
from argosy.errors import ArtifactError, UsageError
from argosy.inputs import InputRequest, make_inputs
from argosy.ir.hashing import model_hash
from argosy.ir.program import Program
from argosy.options import CompileOptions, Dimensions, DimValue
from argosy.runtime.selection import Choice
from argosy.runtime.session import Session
from argosy.targets.base import Target, precision_of
from argosy.verification.code import Code
from argosy.verification.cutting import Truth
from argosy.verification.instructions import compare_instructions
from argosy.verification.measure import measure
from argosy.verification.parts import Parts
from argosy.verification.reference import Reference, RefReference, make_reference
from argosy.verification.report import CaseReport, Difference, InstructionReport, Report
from argosy.verification.tolerance import Tolerance
from argosy.verification.widened import WideReference, rounded

__all__ = ["verify"]

log = logging.getLogger("argosy.verify")


def verify(
    model: str | Path | bytes | Program | Any,
    artifact: Artifact | str | Path | None = None,
    *,
    targets: Sequence[str | Target] = ("native",),
    device: str | None = None,
    exact: bool = False,
    against: str | Reference = "ref",
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    inputs: Mapping[str, Any] | InputRequest | None = None,
    cases: int = 1,
    tolerance: Tolerance | None = None,
    per_instruction: bool = False,
    parts: Parts | str | Path | None = None,
    options: CompileOptions | None = None,
) -> Report:
    """Run a model's code on this machine against `against`, and report every output.

    The code is `artifact`'s, or what `model` compiles to for `targets`. `against` is `ref`, `ref64` (in float64),
    `onnxruntime`, the path of an .npz file with the outputs, or a reference. `inputs` are arrays by name or a request;
    what is missing is generated, with another seed and in turn other sizes for each of `cases`. `dims` are bound as
    `load_onnx` does; of a Program they choose sizes only. `tolerance` is by default the project's rule for this model,
    in the precision of the variant that runs; one without numbers may say that the model is part of a quantised one.
    `per_instruction` also compares every instruction with ref, or ref64, alone and in the run; with `parts`, a folder
    of `save_parts`, by code and inputs that lie there, so that nothing is compiled. Never raises for a mismatch: see
    `Report.passed`.
    """
    if cases < 1:
        raise UsageError(f"cases is {cases}, expected at least 1")
    wanted = Dimensions.of(dims)
    program = model if isinstance(model, Program) else load_onnx(model, dims=wanted)
    if artifact is None:
        artifact = compile_program(program, resolve_targets(targets), options or CompileOptions(dims=wanted))
    else:
        if options is not None:
            raise UsageError("options say how to compile, but there is an artifact", hint="leave out one of both")
        artifact = artifact if isinstance(artifact, Artifact) else Artifact.open(artifact)
        _check_same_model(program, artifact, bound=wanted != Dimensions())
    session = Session(artifact, device=device, exact=exact, checked=True)
    reference = make_reference(against, model, program) if isinstance(against, str) else against
    if per_instruction and not isinstance(reference, (RefReference, WideReference)):
        raise UsageError("instructions are compared with ref or ref64 only", hint="leave --against out")
    if session.variant == reference.name == "ref":
        log.warning("ref is compared with itself; --against onnxruntime is independent")
    if parts is not None:
        if inputs is not None or cases != 1 or not per_instruction:
            raise UsageError(
                "parts have inputs of their own, one set, and are instructions",
                hint="give per_instruction, and neither inputs nor cases",
            )
        parts = parts if isinstance(parts, Parts) else Parts.open(parts)
        inputs = parts.inputs(session.inputs)
    run = _Verification(program, session, reference, tolerance, artifact, parts).run
    return run(inputs, wanted, cases, per_instruction=per_instruction)


class _Verification:
    """One verification: the two sides, and what counts as agreement."""

    def __init__(
        self, program: Program, session: Session, reference: Reference, tolerance: Tolerance | None,
        artifact: Artifact, parts: Parts | None,
    ) -> None:  # fmt: skip
        self._program = program
        self._artifact = artifact
        self._parts = parts
        self._session = session
        self._reference = reference
        self._asked = tolerance if tolerance is not None and tolerance.given else None
        self._quantised = is_quantised(program) or (tolerance is not None and tolerance.quantised)

    def run(
        self,
        inputs: Mapping[str, Any] | InputRequest | None,
        dims: Dimensions,
        cases: int,
        *,
        per_instruction: bool,
    ) -> Report:
        reports: list[CaseReport] = []
        instructions: tuple[InstructionReport, ...] = ()
        for case in range(cases):
            log.info("case %d of %d", case + 1, cases)
            request = inputs if isinstance(inputs, InputRequest) else InputRequest()
            given = None if isinstance(inputs, InputRequest) else inputs
            made = make_inputs(
                self._session.inputs, request, dims, case=case, given=given, program=lambda: self._program
            )
            with made.explaining():
                choice = self._session.choice(made.values)
                tolerance = replace(
                    self._asked or Tolerance(quantised=self._quantised), precision=precision_of(choice.variant)
                )
                found = self._session.observe(made.values, None, number=case)
                expected = self._reference.answer(made.values, case)
                if case == 0 and per_instruction:
                    instructions = self._instructions(made.values, choice, tolerance)
            compared = self._compared(expected, found, tolerance)
            rule = tolerance.rule(self._program.outputs.values())
            told = {name: f"{_told(value)}, {made.origins[name]}" for name, value in made.values.items()}
            reports.append(CaseReport(case, request.seed + case, told, *compared, choice.words, rule))
        return Report(
            reports[0].variant,
            self._reference.name,
            reports[0].tolerance,
            tuple(reports),
            instructions,
        )

    def _compared(
        self, expected: Mapping[str, Any], found: Mapping[str, Any], tolerance: Tolerance
    ) -> tuple[tuple[Difference, ...], tuple[Mismatch, ...]]:
        """How far the outputs are from what is expected, and which do not agree."""
        exact = None
        if isinstance(self._reference, WideReference):
            exact, expected = expected, rounded(expected, self._program.outputs)
        return measure(expected, found, exact), tolerance.compare(expected, found, exact)

    def _instructions(
        self, values: Mapping[str, Any], choice: Choice, tolerance: Tolerance
    ) -> tuple[InstructionReport, ...]:
        """Each instruction compared with the reference, in code as that of the variant that runs; for the run 0."""
        variant = choice.variant
        if variant is None:
            raise UsageError("instructions of ref would be compared with ref", hint="verify code, of another device")
        device = self._session.device
        code = self._parts.code(variant, self._artifact.model_hash, device) if self._parts else Code.of(variant, device)
        program = load_onnx(self._program, dims=dict(variant.dims))
        truth = Truth.by_name(program.main, values, wide=isinstance(self._reference, WideReference))
        if variant.dims and not self._binds(truth, values, tolerance):
            log.warning("with its dims bound, the program gives other results by ref: --bisect tells where")
        return compare_instructions(truth, code, self._session, values, tolerance)

    def _binds(self, bound: Truth, values: Mapping[str, Any], tolerance: Tolerance) -> bool:
        """Whether a program whose dims are bound gives what the program for every size does."""
        general = Truth.by_name(self._program.main, values, wide=bound.is_wide).whole
        return not tolerance.compare(general.expected, bound.whole.expected, general.exact)


def _told(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return f"{'string' if value.dtype == object else value.dtype}{list(value.shape)}"


def _check_same_model(program: Program, artifact: Artifact, *, bound: bool) -> None:
    ours = {name: str(kind) for name, kind in program.outputs.items()}
    theirs = {info.name for info in artifact.manifest.outputs}
    inputs = {info.name for info in artifact.manifest.inputs}
    if set(ours) != theirs or set(program.inputs) != inputs:
        raise ArtifactError(
            f"it is of another model: it takes {', '.join(sorted(inputs))} and gives {', '.join(sorted(theirs))}",
            where=artifact.where,
            hint=f"the model takes {', '.join(program.inputs)} and gives {', '.join(ours)}",
        )
    if not bound and artifact.model_hash != model_hash(program):
        log.warning("%s was compiled from another program than the model, or with other dims", artifact.where)

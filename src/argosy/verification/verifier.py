"""`argosy.verify`: runs the code and the reference on the same inputs, and compares."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argosy.artifact.artifact import Artifact
from argosy.comparison import is_quantised
from argosy.compiler import compile_program, load_onnx, resolve_targets
from argosy.errors import ArtifactError, UsageError
from argosy.inputs import InputRequest, Inputs, make_inputs
from argosy.ir.hashing import model_hash
from argosy.ir.module import Constant, Instruction
from argosy.ir.program import Program
from argosy.options import CompileOptions, Dimensions, DimValue
from argosy.runtime.session import Session
from argosy.targets.base import Target
from argosy.verification.measure import measure
from argosy.verification.reference import Reference, RefReference, make_reference
from argosy.verification.report import CaseReport, InstructionReport, Report
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
    options: CompileOptions | None = None,
) -> Report:
    """Run a model's code on this machine against `against`, and report every output.

    The code is `artifact`'s, or what `model` compiles to for `targets`. `against` is `ref`, `ref64` (in float64),
    `onnxruntime`, the path of an .npz file with the outputs, or a reference. `inputs` are arrays by name or a request;
    what is missing is generated, with another seed and in turn other sizes for each of `cases`. `dims` are bound as
    `load_onnx` does; of a Program they choose sizes only. `tolerance` is by default the project's rule, for the
    precision of the variant that runs. `per_instruction` also compares
    the results of the nodes in between. Never raises for a mismatch: see `Report.passed`.
    """
    if cases < 1:
        raise UsageError(f"cases is {cases}, expected at least 1")
    wanted = Dimensions.of(dims)
    program = model if isinstance(model, Program) else load_onnx(model, dims=wanted)
    if artifact is None:
        artifact = compile_program(program, resolve_targets(targets), options or CompileOptions(dims=wanted))
    else:
        artifact = artifact if isinstance(artifact, Artifact) else Artifact.open(artifact)
        _check_same_model(program, artifact, bound=wanted != Dimensions())
    session = Session(artifact, device=device, exact=exact, checked=True)
    reference = make_reference(against, model, program) if isinstance(against, str) else against
    if per_instruction and not isinstance(reference, RefReference):
        raise UsageError("instructions are compared with ref only", hint="leave --against out")
    if session.variant == reference.name == "ref":
        log.warning("ref is compared with itself; --against onnxruntime is independent")
    allowed = tolerance or Tolerance()
    if not allowed.given:
        precision = str(artifact.manifest.options.get("precision", "fp32"))
        allowed = Tolerance(quantised=is_quantised(program), precision=precision)
    run = _Verification(program, session, reference, allowed).run
    return run(inputs, wanted, cases, per_instruction=per_instruction)


class _Verification:
    """One verification: the two sides, and what counts as agreement."""

    def __init__(self, program: Program, session: Session, reference: Reference, tolerance: Tolerance) -> None:
        self._program = program
        self._session = session
        self._reference = reference
        self._tolerance = tolerance

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
        unmatched = 0
        for case in range(cases):
            log.info("case %d of %d", case + 1, cases)
            request = inputs if isinstance(inputs, InputRequest) else InputRequest()
            given = None if isinstance(inputs, InputRequest) else inputs
            made = make_inputs(
                self._session.inputs, request, dims, case=case, given=given, program=lambda: self._program
            )
            with made.explaining():
                if case == 0 and per_instruction:
                    ours, theirs = _Recorder(), _Recorder()
                    found = self._session.observe(made.values, ours)
                    expected = RefReference(self._program).answer(made.values, case, theirs)
                    instructions, unmatched = self._instructions(ours, theirs)
                else:
                    found = self._session.run(made.values)
                    expected = self._reference.answer(made.values, case)
            reports.append(self._case(case, request.seed + case, made, expected, found))
        return Report(
            self._session.variant,
            self._reference.name,
            self._tolerance.rule(self._program.outputs.values()),
            tuple(reports),
            instructions,
            unmatched,
        )

    def _case(
        self, case: int, seed: int, made: Inputs, expected: Mapping[str, Any], found: Mapping[str, Any]
    ) -> CaseReport:
        told = {name: f"{_told(value)}, {made.origins[name]}" for name, value in made.values.items()}
        exact = None
        if isinstance(self._reference, WideReference):
            exact, expected = expected, rounded(expected, self._program.outputs)
        mismatches = self._tolerance.compare(expected, found, exact)
        return CaseReport(case, seed, told, measure(expected, found, exact), mismatches)

    def _instructions(self, ours: _Recorder, theirs: _Recorder) -> tuple[tuple[InstructionReport, ...], int]:
        reports: list[InstructionReport] = []
        unmatched = 0
        for node, (instruction, results) in ours.last.items():
            other = theirs.last.get(node)
            if other is None or not _comparable(instruction, other[0]):
                unmatched += 1
                continue
            names = [f"result {index}" for index in range(len(results))]
            expected, found = dict(zip(names, other[1], strict=True)), dict(zip(names, results, strict=True))
            mismatches = self._tolerance.compare(expected, found)
            reports.append(InstructionReport(node, instruction.op.name, measure(expected, found), mismatches))
        return tuple(reports), unmatched


class _Recorder:
    """Keeps the last results that each node of the model had."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[Instruction, tuple[Any, ...]]] = {}

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        if instruction.source and not isinstance(instruction.op, Constant):
            self.last.pop(instruction.source, None)  # so that the order is that of the last results
            self.last[instruction.source] = instruction, tuple(results)


def _comparable(left: Instruction, right: Instruction) -> bool:
    """Whether two instructions of one node compute the same thing: passes may have changed what ends the node."""
    return left.op.name == right.op.name and len(left.types) == len(right.types) and left.types == right.types


def _told(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return f"{value.dtype}{list(value.shape)}"


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

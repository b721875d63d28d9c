"""`argosy.debugging.bisect`: the first node whose code is wrong, and the part of the compiler that makes it so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from argosy.artifact.artifact import Artifact
from argosy.comparison import compare, is_quantised
from argosy.debugging.binding import bound_by, first_misbound
from argosy.debugging.blame import Blame, blame_code, blame_passes, evaluated
from argosy.debugging.imported import first_misread
from argosy.debugging.search import first_wrong
from argosy.debugging.symptom import Outputs, Symptom, symptom_of
from argosy.errors import ArgosyError, UsageError
from argosy.ir.program import Program
from argosy.runtime.session import Session
from argosy.targets.base import precision_of
from argosy.verification.bodies import inside
from argosy.verification.code import Code
from argosy.verification.cutting import Cut, Truth
from argosy.verification.measure import measure
from argosy.verification.report import Difference, difference_lines, plain
from argosy.verification.single_op import tolerance_of
from argosy.verification.tolerance import Tolerance

__all__ = ["Bisection", "bisect"]

log = logging.getLogger("argosy.bisect")

_MOST_FAULTS: Final = 4
"""Parts that are left out one after the other, at most."""


@dataclass(frozen=True, slots=True)
class Bisection:
    """What is wrong first. `str` gives the text that the command line shows.

    `nodes` are the nodes of the model that are wrong together on true inputs, the last of them is the first wrong one;
    empty where the whole agrees. `differences` are those of their results, or `error` is what they end with. `without`
    is what was left out, that which is to blame too, and `cured` says that the whole model is right then; where it is
    not, `following` is what is wrong then, or what has wrong numbers where a node that ends with an error was first.
    `compiles` counts how often code was made, for what follows too. `rounding` says that the node alone is no further
    off than rounding explains: the rule is stricter than that.
    """

    variant: str
    nodes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    error: str = ""
    blame: Blame | None = None
    without: tuple[str, ...] = ()
    cured: bool = False
    compiles: int = 0
    following: Bisection | None = None
    rounding: bool = False

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong."""
        return self.blame is None and not self.nodes

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        told: dict[str, Any] = plain({"agrees": self.agrees, **asdict(self)})
        return told

    def __str__(self) -> str:
        if self.agrees:
            return f"{self.variant} agrees with ref: there is nothing to look for"
        lines = []
        if self.nodes:
            lines.append(f"first wrong node: {self.nodes[-1]} ({self.ops[-1]}), on true inputs")
            if len(self.nodes) > 1:
                lines.append(f"  only together with {', '.join(self.nodes[:-1])}")
            lines += [f"  {line}" for difference in self.differences for line in difference_lines(difference)]
            if self.rounding:
                lines.append("  no further off than rounding explains: the rule is stricter than that")
            lines += [f"  it ends with: {self.error}"] if self.error else []
        if self.blame is not None:
            where = "" if self.blame.where == ", ".join(self.nodes) else f" at {self.blame.where}"
            lines += [f"to blame: {self.blame.part}{where}", f"  {self.blame.why}"]
        if self.without:
            words = " ".join(f"--without '{part}'" for part in self.without)
            lines.append(f"with {words} the whole model {'agrees' if self.cured else 'is still wrong'}")
        return "\n".join((*lines, str(self.following) if self.following else f"{self.compiles} compiles"))


def bisect(
    program: Program,
    artifact: Artifact,
    inputs: Mapping[str, Any],
    *,
    device: str | None = None,
    exact: bool = False,
    against: str = "ref",
    tolerance: Tolerance | None = None,
    model: Any = None,
    number: int = 0,
) -> Bisection:
    """Find what is wrong with the code that `artifact` has for this machine and these inputs.

    The nodes come first: by halving the graph, on the values of ref, each trial compiled as the artifact was. Then the
    part of the compiler: a pass and its rule, a stage, a solution. `against` is `ref` or `ref64`; with that one it may
    be the model itself, whose own types are too short. `tolerance` is by default the project's rule. With the ONNX
    `model` (a path, bytes or a ModelProto) ref is compared with ONNX Runtime, node by node, before. `number` is that
    of the run, which random numbers depend on.
    """
    if against not in ("ref", "ref64"):
        raise UsageError(f"{against!r} does not tell what lies between", hint="bisect against ref or ref64")
    session = Session(artifact, device=device, exact=exact, checked=True)
    choice = session.choice(inputs)
    record = choice.variant
    if record is None and model is None:
        raise UsageError(
            "ref is what code is compared with: there is nothing to look for",
            hint="name a device, or give the ONNX model to compare ref with ONNX Runtime",
        )
    allowed = replace(tolerance or Tolerance(quantised=is_quantised(program)), precision=precision_of(record))
    truth = Truth.by_name(program.main, inputs, number, wide=against == "ref64")
    misread = None if model is None else first_misread(model, truth, inputs, allowed)
    if misread is not None:
        nodes, ops = (misread.blame.where,), (misread.instruction.op.name,)
        return Bisection(session.variant, nodes, ops, misread.differences, blame=misread.blame)
    symptom = symptom_of(lambda: session.observe(inputs, None, number=number), truth.whole, allowed)
    if record is None or not symptom.kind:
        return Bisection(choice.words)
    code = Code.of(record, device)
    if record.dims:
        plain = Truth.by_name(program.main, inputs, number) if truth.is_wide else truth
        misbound = first_misbound(plain, code, record.dims, symptom)
        if misbound is not None:
            part, blame = misbound
            found, error = _outcome(lambda: evaluated(bound_by(code, part.program.main, record.dims), part))
            return Bisection(choice.words, part.nodes, part.ops, measure(part.expected, found), error, blame)
        bound = bound_by(code, program.main, record.dims)
        truth = Truth.by_name(bound, inputs, number, wide=truth.is_wide)
    return _Search(code, symptom).run(choice.words, truth)


def _outcome(run: Callable[[], Outputs]) -> tuple[Outputs, str]:
    """What a run gives, or nothing and what it ends with."""
    try:
        return run(), ""
    except ArgosyError as error:
        return {}, str(error)


class _Search:
    """One search for what has the symptom of the whole."""

    def __init__(self, code: Code, symptom: Symptom) -> None:
        self._code = code
        self._symptom = symptom

    def run(self, variant: str, truth: Truth) -> Bisection:
        """What is wrong first, and what is to blame."""
        code, symptom, whole = self._code, self._symptom, truth.whole
        if truth.is_wide and self._model_wrong(whole):
            return self._of_model(variant, truth)
        if not self._is_wrong(whole):
            told = "compiled again, its program gives right code: argosy recompile makes the artifact again"
            return Bisection(variant, blame=Blame("artifact", variant, variant, told), compiles=code.compiles)
        by_passes = symptom.is_numbers and self._passes_wrong(whole)
        is_wrong = self._passes_wrong if by_passes else self._is_wrong
        part = self._deeper(first_wrong(truth, is_wrong) or whole, is_wrong)
        log.info("the first wrong node is %s", ", ".join(part.nodes))
        found, error = _outcome(lambda: code.run(part))
        blame = blame_passes(part, code, symptom) if by_passes or error else None
        blame = blame or blame_code(part, code, symptom)
        without = (*code.options.without, *blame.without) if blame.without else ()
        cured = bool(without) and not self._is_wrong(whole, *blame.without)
        differences = measure(part.expected, found, part.exact)
        rounding = not by_passes and bool(found) and self._rounds(part, found)
        following = None
        if without and not cured and len(without) < _MOST_FAULTS:
            following = _Search(code.leaving_out(blame.without), symptom).run(variant, truth)
        elif error and not cured and symptom.is_numbers and not symptom.same:  # what ends so may hide another fault
            following = _Search(code, symptom.alone).run(variant, truth)
        compiles = following.compiles if following else code.compiles
        return Bisection(
            variant, part.nodes, part.ops, differences, error, blame, without, cured, compiles, following, rounding
        )

    def _rounds(self, part: Cut, found: Mapping[str, Any]) -> bool:
        """Whether a part of one instruction is no further off than rounding explains."""
        truth = Truth.by_name(part.program.main, part.inputs, part.number)
        if len(truth.steps) != 1:
            return False
        (step,) = truth.steps
        rule = tolerance_of(step, truth.symbols, self._symptom.tolerance.precision, truth.operands(step))
        return not compare(part.expected, found, rule, part.exact)

    def _is_wrong(self, part: Cut, *without: str) -> bool:
        return self._symptom.shows(lambda: self._code.run(part, without=without), part)

    def _passes_wrong(self, part: Cut) -> bool:
        return self._symptom.shows(lambda: evaluated(self._code.piped(part.program.main), part), part)

    def _model_wrong(self, part: Cut) -> bool:
        return self._symptom.shows(lambda: evaluated(part.program.main, part), part)

    def _of_model(self, variant: str, truth: Truth) -> Bisection:
        """The first part of the model at which ref, in the types of the model, is as wrong as the code."""
        part = first_wrong(truth, self._model_wrong) or truth.whole
        differences = measure(part.expected, evaluated(part.program.main, part), part.exact)
        blame = Blame(
            "model", "rounding", ", ".join(part.nodes), "ref, in the types of the model, is as far from float64"
        )
        return Bisection(variant, part.nodes, part.ops, differences, blame=blame, compiles=self._code.compiles)

    def _deeper(self, part: Cut, is_wrong: Callable[[Cut], bool]) -> Cut:
        """The part of a body, where the wrong node is a conditional or a loop and its body is wrong by itself."""
        while len(part.instructions) == 1:
            truth = inside(part)
            found = None if truth is None else first_wrong(truth, is_wrong)
            if found is None:
                break
            part = found
        return part

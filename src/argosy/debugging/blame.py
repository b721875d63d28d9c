"""Which part of the compiler makes a program wrong: a pass and its rule, a stage, a solution, or code that they share.

Passes give modules that ref can run, so a wrong pass is found without compiling: by halving the passes that changed
something, then the times that a rule of that pass has fired. Where all passes are right, it is in the code: stages and
solutions are left out one by one until it is right, so that whoever has the fault knows how to go on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.debugging.search import first_wrong, turning_point
from argosy.debugging.symptom import Symptom
from argosy.errors import ArgosyError
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Instruction, Module
from argosy.ir.op import Env
from argosy.options import STAGES
from argosy.passes.manager import PassContext, Stage
from argosy.rewrite.trace import Trace
from argosy.targets.lowering.choices import HOST, NOTHING, Choice
from argosy.verification.code import Code
from argosy.verification.cutting import Cut, Truth

__all__ = ["Blame", "blame_code", "blame_passes", "evaluated"]

_MOST_SOLUTIONS: Final = 6
"""How many solutions of one instruction are left out together, at most."""


@dataclass(frozen=True, slots=True)
class Blame:
    """A part of the compiler that makes code wrong: `kind` is pass, rule, stage, solution, code, artifact or import.

    It is model where no part of the compiler does. `without` is what to leave out for right code, empty where nothing
    was found to help; `where` is the node or step; `why` is how it was found, in words.
    """

    kind: str
    name: str
    where: str
    why: str
    without: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """The part as `--without` spells it, or what stands in its place: `rule:fold_twice`, `code:exp`."""
        return f"{self.kind}:{self.name}"


def evaluated(module: Module, part: Cut) -> dict[str, Any]:
    """What ref says of a module that has the inputs of a part, by name."""
    results = Interpreter(module).run([part.inputs[name] for name in module.parameter_names], Env({}, part.number))
    return dict(zip(module.result_names, results, strict=True))


def blame_passes(part: Cut, code: Code, symptom: Symptom) -> Blame | None:
    """The first pass after which ref gets other results, and the rule of it; None where all passes are right."""
    stages: list[Stage] = []
    failed: ArgosyError | None = None
    try:
        code.piped(part.program.main, lambda stage: stages.append(stage) if stage.changed else None)
    except ArgosyError as error:
        failed = error
    # A pass that gives the same module with more known of it changes nothing here.
    wrong = turning_point(len(stages), lambda count: _is_wrong(stages[count - 1].after, part, symptom))
    if wrong is None:
        return None if failed is None else _blame_failed(part, failed)
    stage = stages[wrong - 1]
    phase = next(phase for phase in code.target.phases(code.options) if phase.name == stage.phase)
    step = next(step for step in phase.passes if step.name == stage.name)
    trace = Trace(code.options.leaves_out("rule"))
    step.run(stage.before, PassContext.of(stage.before, trace))
    firings = trace.firings

    def limited(count: int) -> bool:
        context = PassContext.of(stage.before, Trace(code.options.leaves_out("rule"), count))
        return not symptom.is_gone(lambda: evaluated(step.run(stage.before, context), part), part)

    fired = turning_point(len(firings), limited)
    if fired is not None and not limited(0):
        event = firings[fired - 1]
        why = f"ref gets other results once it has fired at {event.node}, in the pass {stage.name}"
        return Blame("rule", event.rule, event.node, why, (f"rule:{event.rule}",))
    why = f"ref gets other results after it, in the phase {stage.phase}"
    return Blame("pass", stage.name, ", ".join(part.nodes), why, (f"pass:{stage.name}",))


def _blame_failed(part: Cut, error: ArgosyError) -> Blame:
    """The pass that ends with an error."""
    name = error.stage or error.where
    return Blame("pass", name, ", ".join(part.nodes), f"it ends with: {error}", (f"pass:{name}",) * bool(error.stage))


def _is_wrong(module: Module, part: Cut, symptom: Symptom) -> bool:
    return not symptom.is_gone(lambda: evaluated(module, part), part)


def blame_code(part: Cut, code: Code, symptom: Symptom) -> Blame:
    """The stage or solution of a program whose passes are right, and whose code is wrong."""
    where = ", ".join(part.nodes)
    wrong = _wrong_lowered(part, code, symptom)
    steps: Sequence[Choice] = ()
    failed = ""
    try:
        steps = _steps(wrong, code) if wrong else ()
    except ArgosyError as error:
        failed = str(error)
    choice = steps[-1] if steps else None

    def helps(*without: str, threads: int | None = None) -> bool:
        return symptom.is_gone(lambda: code.run(part, without=without, threads=threads), part)

    told = f" ({choice.solution}{': ' * bool(choice.config)}{choice.config})" if choice else ""
    if helps("stage:cache"):
        why = f"compiled anew, without the kernels of before, it is right{told}: argosy cache clear removes them"
        return Blame("stage", "cache", where, why, ("stage:cache",))
    alone = helps(threads=1)
    for stage in STAGES:
        if stage != "cache" and helps(f"stage:{stage}"):
            return Blame("stage", stage, where, f"without that stage it is right{told}", (f"stage:{stage}",))
    if alone:
        found = _blame_solutions(part, code, helps, choice) if choice else None
        why = f"on one thread it is right{told}: its threads get in each other's way"
        return replace(found, why=why) if found and found.kind == "solution" else Blame("stage", "threads", where, why)
    if wrong and failed:
        return Blame("code", _op_words(wrong.instructions[-1]), where, f"making it ends with: {failed}")
    if choice is None:
        return Blame("code", "unknown", where, "its code is wrong as a whole, and right instruction by instruction")
    return _blame_before(part, code, helps, steps) or _blame_solutions(part, code, helps, choice)


def _blame_before(part: Cut, code: Code, helps: Callable[..., bool], steps: Sequence[Choice]) -> Blame | None:
    """The solution of what the last step reads, if that step's kernels are right on what is made in another way."""
    last = steps[-1]
    for step in steps[:-1]:
        without = f"solution:{step.solution}"
        if step.solution in (HOST, last.solution) or not helps(without):
            continue
        kernels = {entry for choice in _choices(part, code, (without,)) for entry in choice.kernels}
        if kernels >= set(last.kernels):
            why = f"without it the same kernels of {last.solution} are right at {', '.join(last.nodes)}"
            return Blame("solution", step.solution, ", ".join(step.nodes), why, (without,))
    return None


def _wrong_lowered(part: Cut, code: Code, symptom: Symptom) -> Cut | None:
    """The instructions that are wrong together after the passes; None where none are by themselves.

    The last of them is where it shows first.
    """
    truth = Truth.by_name(code.piped(part.program.main), part.inputs, part.number, wide=part.exact is not None)
    return first_wrong(truth, lambda cut: symptom.shows(lambda: code.run_lowered(cut), cut))


def _steps(part: Cut, code: Code) -> Sequence[Choice]:
    """How the instructions of a part, which has gone through the passes, are done."""
    return [choice for choice in code.lowered(part.program).choices if choice.solution != NOTHING]


def _choices(part: Cut, code: Code, without: Sequence[str]) -> Sequence[Choice]:
    """How the instructions of a part are done without some solutions; not at all where that ends with an error."""
    try:
        return code.choices(part.program, tuple(without))
    except ArgosyError:
        return ()


def _blame_solutions(part: Cut, code: Code, helps: Callable[..., bool], choice: Choice) -> Blame:
    """The solution of the wrong instruction; where others are as wrong, the code that they share."""
    where = ", ".join(choice.nodes) or ", ".join(part.nodes)
    words = f" with {choice.config}" if choice.config else ""
    if choice.solution == HOST:
        return Blame("code", choice.instruction.op.name, where, "numpy does it on the host, otherwise than ref")
    tried: list[str] = []
    solution = choice.solution
    for _ in range(_MOST_SOLUTIONS):
        tried.append(solution)
        without = tuple(f"solution:{name}" for name in tried)
        if helps(*without):
            if len(tried) == 1:
                why = f"it makes the kernel {', '.join(choice.kernels)}{words}; without it the code is right"
                return Blame("solution", solution, where, why, without)
            break
        following = _next_solution(part, code, without, choice)
        if following is None or following in tried:
            break
        solution = following
    told = ", ".join(tried)
    why = f"the code of {told} is wrong alike{words}: what they share is at fault"
    return Blame("code", _op_words(choice.instruction), where, why)


def _next_solution(part: Cut, code: Code, without: Sequence[str], choice: Choice) -> str | None:
    """What does the instruction once some solutions are left out; None where the host does."""
    names = set(choice.nodes)
    choices = _choices(part, code, without)
    found = [other.solution for other in choices if names & set(other.nodes) and other.solution != HOST]
    return found[-1] if found else None


def _op_words(instruction: Instruction) -> str:
    inside = [inner for module in instruction.op.modules() for inner in module.walk()] or [instruction]
    names = (getattr(getattr(each.op, "formula", None), "primitive", "") or each.op.name for each in inside)
    return " ".join(dict.fromkeys(name for name in names if name not in ("parameter", "constant")))

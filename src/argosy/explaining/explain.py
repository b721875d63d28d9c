"""Asks each arch what became of nodes: its passes, and its lowering as far as that goes without a toolchain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from argosy.artifact.artifact import Artifact
from argosy.artifact.plan import CallStep, CheckStep, EvaluateStep, LaunchStep, PlanRecord, Step, steps_in
from argosy.compiler import load_onnx, resolve_targets
from argosy.errors import UsageError
from argosy.explaining.codes import Code, codes_of_artifact, codes_of_model
from argosy.explaining.graph import Graph
from argosy.explaining.history import Course, History
from argosy.explaining.nodes import ModelNode, find_node, nodes_of_model
from argosy.explaining.report import ArchReport, Explanation, NodeReport, Way
from argosy.explaining.words import buffer_words, instruction_words, short_name, step_words
from argosy.ir.module import Constant
from argosy.ir.program import Program
from argosy.options import CompileOptions, Dimensions, DimValue
from argosy.reproducers import compile_case, leaving_reproducer
from argosy.targets.base import Outline, Target, Workshop
from argosy.targets.lowering.choices import BLOCKS, HOST, NOTHING, Choice

__all__ = ["explain", "why"]

_SHOWN: Final = 4
"""Nodes that a line lists."""
_NO_INSTRUCTION: Final = "no instruction: what it gives is there already, or nothing needs it"
_NOT_HELD: Final = (
    "not in the artifact: another version of Argosy made that, or a toolchain refused kernels, as --toolchains tells"
)
_REF: Final = "numpy evaluates the program as it was imported, instruction by instruction"


def why(
    model: str | Path | bytes | Program | Artifact | Any,
    node: str | Sequence[str] = (),
    *,
    targets: Sequence[str | Target] = (),
    precision: str = "fp32",
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    accuracy: str = "standard",
    allow_tf32: bool = False,
    fast_math: bool = False,
    mode: str = "balanced",
    without: Sequence[str] = (),
    toolchains: bool = False,
) -> Explanation:
    """What became of nodes of a model on each target: how they were imported, what passes did, which kernels run them.

    `node` is a name, an output, an op that only one node has, or a number; several of them; or all nodes where it is
    empty. The rest is as for `compile`: sizes in `dims` that get code of their own are told one by one. Of an Artifact
    all its variants are told, or those that `targets` name and runs of the sizes in `dims` take; how it was compiled
    is in it. Kernels are compiled only with `toolchains`: what these refuse is known then. Raises ModelError, and
    UsageError for an unknown node, and for an arch that an artifact has no code for.
    """
    asked = Dimensions.of(dims)
    options = CompileOptions(precision, asked, accuracy=accuracy, allow_tf32=allow_tf32, fast_math=fast_math, mode=mode,
                             without=tuple(without))  # fmt: skip
    names = (node,) if isinstance(node, str) and node else tuple(node)
    if isinstance(model, Artifact):
        if replace(options, dims=Dimensions()) != CompileOptions():
            raise UsageError("options say how to compile, but an artifact is compiled already", where=model.where)
        program = model.program()
        return explain(program, program, names, codes_of_artifact(model, targets, asked), toolchains=toolchains)
    chosen = resolve_targets(targets or ("native",))
    program = load_onnx(model, dims=asked)
    return explain(model, program, names, codes_of_model(program, chosen, options), toolchains=toolchains)


def explain(
    model: Any, program: Program, asked: Sequence[str], codes: Sequence[Code], *, toolchains: bool = False
) -> Explanation:
    """The same of a program that was read already; `model` is what it was read from, or the program."""
    nodes = nodes_of_model(model, program)
    chosen = [find_node(nodes, text) for text in asked] or nodes
    archs = [_Arch.of(program, code, toolchains=toolchains) for code in codes]
    begin = Graph(program.main)
    return Explanation(tuple(_report(node, begin, archs) for node in chosen))


def _report(node: ModelNode, begin: Graph, archs: Sequence[_Arch]) -> NodeReport:
    imported = [instruction_words(p.instruction) for source in node.sources for p in begin.of_node.get(source, ())]
    told = tuple(arch.report(node) for arch in archs)
    return NodeReport(node.name, node.op, node.outputs, tuple(imported), told)


@dataclass(frozen=True, slots=True)
class _Arch:
    """A program on its way to one code."""

    code: Code
    history: History
    outline: Outline | None

    @staticmethod
    def of(program: Program, code: Code, *, toolchains: bool) -> _Arch:
        target, options = code.target, code.options
        with leaving_reproducer(partial(compile_case, program, (target,), options)):
            phases = target.phases(options, code.dims)
            history = History(program.main, phases, options.leaves_out("rule"))
            if not target.needs_variant:
                return _Arch(code, history, None)
            if not toolchains:
                return _Arch(code, history, target.outline(history.module, options))
            with Workshop(options.jobs) as workshop:
                lowered = target.lower(history.module, options, workshop)
            return _Arch(code, history, Outline(lowered.variant.plan, lowered.choices))

    def report(self, node: ModelNode) -> ArchReport:
        told = partial(ArchReport, self.code.target.arch, self.code.words, dict(self.code.dims))
        if not any(source in self.history.begin.of_node for source in node.sources):
            return told(_NO_INSTRUCTION)
        if self.outline is None:
            return told(_REF)
        course = self.history.course(node.sources)
        ways = tuple(_way(choice, self.outline.plan) for choice in self.outline.choices if _does(choice, course))
        return told(_summary(node, course, ways), course.changes, ways, self._note(course) if ways else "")

    def _note(self, course: Course) -> str:
        """What is not certain; the plan of an artifact makes it so where it has the same kernels."""
        if self.outline is None or self.code.plan is None:
            return "" if self.outline is None else self.outline.note
        held = {step.entry for step in _kernel_steps(self.code.plan)}
        does = [choice for choice in self.outline.choices if _does(choice, course)]
        steps = [step for choice in does for step in _kernel_steps(self.outline.plan) if _belongs(step, choice)]
        other = [step.entry for step in steps if step.entry not in held]
        return f"{', '.join(dict.fromkeys(other))} {_NOT_HELD}" if other else ""


def _does(choice: Choice, course: Course) -> bool:
    """Whether an instruction does the work of a node; an `if` or a loop around it does not."""
    if choice.solution == BLOCKS:
        return choice.instruction.source in course.carriers
    return not set(course.carriers).isdisjoint(choice.nodes)


def _way(choice: Choice, plan: PlanRecord) -> Way:
    instruction = choice.instruction
    inner = instruction.op.modules()
    ops = [each.op.name for module in inner for each in module.instructions if not isinstance(each.op, Constant)]
    steps = [step for step in _steps(plan) if _belongs(step, choice)]
    writes = [number for step in steps for number in _writes(step)]
    return Way(
        f"fused {', '.join(ops)}" if instruction.op.name == "fused" else instruction.op.name,
        choice.nodes,
        choice.solution,
        choice.config,
        choice.solution == HOST,
        choice.at_load,
        choice.declined,
        choice.kernels,
        tuple(map(step_words, steps)),
        tuple(buffer_words(plan, number) for number in dict.fromkeys(writes)),
    )


def _kernel_steps(plan: PlanRecord) -> Iterator[LaunchStep | CallStep]:
    return (step for step in _steps(plan) if isinstance(step, LaunchStep | CallStep))


def _steps(plan: PlanRecord) -> Iterator[Step]:
    for blocks in (*(record.body for record in plan.prepare), plan.body):
        yield from steps_in(blocks)


def _belongs(step: Step, choice: Choice) -> bool:
    """Whether a step does a part of an instruction."""
    if isinstance(step, (LaunchStep, CallStep)):
        return step.entry in choice.kernels and step.source == choice.instruction.source
    if isinstance(step, EvaluateStep):
        return choice.solution == HOST and step.source == choice.instruction.source
    return isinstance(step, CheckStep) and step.source == choice.instruction.source


def _writes(step: Step) -> Sequence[int]:
    if isinstance(step, EvaluateStep):
        return step.results
    return step.writes if isinstance(step, (LaunchStep, CallStep)) else ()


def _summary(node: ModelNode, course: Course, ways: Sequence[Way]) -> str:
    """What became of a node in a line."""
    if not course.carriers:
        return course.fate
    if not ways:
        return "its value is a constant"
    known = (*node.sources, *course.carriers)
    told = "; ".join(dict.fromkeys(_way_summary(way, known) for way in ways))
    return told if course.own else f"in {_listed(course.carriers)}: {told}"


def _way_summary(way: Way, known: Collection[str]) -> str:
    """How an instruction is done, and which nodes beside those that are `known` it stands for."""
    if way.host:
        return f"on the host, by numpy: {'; '.join(way.declined)}"
    if way.solution == NOTHING:
        return "nothing is done: its result lies where its operand does"
    others = [name for name in way.nodes if name not in known]
    return f"{way.solution}{', once at load' if way.at_load else ''}{f', with {_listed(others)}' if others else ''}"


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*map(short_name, names[:_SHOWN]), *more])

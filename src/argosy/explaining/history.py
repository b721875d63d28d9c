"""What the passes of a pipeline do to the instructions of a node, one after another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from argosy.explaining.graph import Fate, Graph, Placed, fates
from argosy.explaining.report import Change
from argosy.explaining.words import instruction_words, op_words
from argosy.ir.module import Instruction, Module
from argosy.ops.fused import Fused
from argosy.passes.manager import PassContext, PassManager, Phase, Stage
from argosy.rewrite.trace import Event, Trace

__all__ = ["Course", "History"]


@dataclass(frozen=True, slots=True)
class Course:
    """A node's way through the passes: the `changes`, and the nodes whose instructions do its work in the end.

    These are none where it has become a constant, or nothing; `fate` then says so. `own` says that it has instructions
    of its own still.
    """

    changes: tuple[Change, ...]
    carriers: tuple[str, ...]
    fate: str
    own: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A pass that has run: the modules before and after, and what rules did meanwhile."""

    stage: Stage
    before: Graph
    after: Graph
    events: tuple[Event, ...]


class History:
    """The passes of a pipeline over a module, kept so that one can ask about any node."""

    def __init__(self, module: Module, phases: Iterable[Phase], without_rules: Collection[str] = ()) -> None:
        self._steps: list[_Step] = []
        self._told: dict[Instruction, str] = {}
        self._trace = Trace(without_rules)
        self._fired = 0
        self._declined = 0
        self.begin = self._graph = Graph(module)
        context = PassContext.of(module, self._trace)
        self.module = PassManager(tuple(phases), observers=(self._note,)).run(module, context)

    def _note(self, stage: Stage) -> None:
        fired, declined = self._trace.firings, self._trace.declined
        events = (*fired[self._fired :], *declined[self._declined :])
        self._fired, self._declined = len(fired), len(declined)
        before = self._graph
        if stage.before is not before.module:  # dead code has gone before the first pass
            before = Graph(stage.before)
        self._graph = Graph(stage.after) if stage.changed else before
        self._steps.append(_Step(stage, before, self._graph, events))

    def course(self, sources: Collection[str]) -> Course:
        """What became of the node whose instructions come from `sources`."""
        own = dict.fromkeys(source for source in sources if source in self.begin.of_node)
        carriers = dict(own)
        changes: list[Change] = []
        ends: dict[str, None] = {}
        graph = self.begin
        for step in self._steps:
            if step.before is not graph:  # what nothing reads goes before the first pass
                for name in _gone(carriers, step.before):
                    del carriers[name], own[name]
                    ends.setdefault(str(Fate("unread")))
            graph = step.after
            met = {name: fates(step.before, graph, name) for name in _gone(carriers, graph)}
            told = {
                fate: str(fate) if name in own else f"in {name}: {fate}"
                for name, found in met.items()
                for fate in found
            }
            change = self._change(step, carriers, told)
            if change is not None:
                changes.append(change)
            for name in met:
                del carriers[name]
                own.pop(name, None)
            for fate, words in told.items():
                if fate.kind != "nothing" and fate.node in graph.of_node:
                    carriers.setdefault(fate.node)
                else:
                    ends.setdefault(words)
        return Course(tuple(changes), tuple(carriers), "" if carriers else "; ".join(ends), bool(own))

    def _change(self, step: _Step, carriers: Collection[str], met: Mapping[Fate, str]) -> Change | None:
        """What a pass did to instructions of these nodes; `met` are the fates of those that have gone, in words."""
        stage = step.stage
        before, after = (_placed(graph, carriers) for graph in (step.before, step.after))
        changed = sorted(map(self._key, before)) != sorted(map(self._key, after))
        nodes = (*carriers, *(fate.node for fate in met)) if changed else ()
        fired = [event.rule for event in step.events if event.fired and event.node in nodes]
        declined = [
            f"{event.rule}: {event.reason}" for event in step.events if not event.fired and event.node in carriers
        ]
        if not changed and not declined:
            return None
        return Change(
            stage.phase,
            stage.name,
            stage.number,
            tuple(map(_words, before)) if changed else (),
            tuple(map(_words, after)) if changed else (),
            tuple(dict.fromkeys(fired)),
            tuple(dict.fromkeys(declined)),
            "; ".join(met.values()),
        )

    def _key(self, placed: Placed) -> str:
        """What an instruction is and where, whatever it reads."""
        told = self._told.get(placed.instruction)
        if told is None:
            told = self._told[placed.instruction] = op_words(placed.instruction)
        return f"{told} {'' if placed.inside is None else placed.inside.op.name}"


def _gone(nodes: Iterable[str], graph: Graph) -> list[str]:
    """Those of the nodes that have no instruction any more."""
    return [name for name in nodes if name not in graph.of_node]


def _placed(graph: Graph, nodes: Iterable[str]) -> list[Placed]:
    return [placed for name in nodes for placed in graph.of_node.get(name, ())]


def _words(placed: Placed) -> str:
    around = placed.inside
    text = instruction_words(placed.instruction, around)
    if around is None:
        return text
    kind = "one kernel's loops" if isinstance(around.op, Fused) else f"the {around.op.name}"
    return f"{text}, in {kind} of {around.source}"

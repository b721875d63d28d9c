"""The rewrite engine: applies rules to a module until none fires.

Instructions are visited in order, so that what an instruction reads is in its final form when its rules
are tried. When a rule fires, what it built is visited in turn before the walk goes on. One walk thus
reaches the fixed point unless a rule asks how often a value is used, which later changes can lower: then
walks are repeated until one changes nothing. The work is linear in the number of instructions.

A replacement takes over the source and the result names of what it replaces. A chain of replacements
longer than `DEPTH_LIMIT` at one instruction means that rules undo each other: InternalError, naming them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from argosy.errors import InternalError, ModelError
from argosy.ir.builder import Namer
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Module, Value
from argosy.rewrite.dead_code import remove_dead_code
from argosy.rewrite.pattern import head
from argosy.rewrite.rebuild import Rebuild, namer_of
from argosy.rewrite.rule import Rewritten, Rule, RuleSet
from argosy.rewrite.trace import Event, Trace, node_name

__all__ = ["DEPTH_LIMIT", "rewrite"]

DEPTH_LIMIT: Final = 64
"""Longest chain of replacements that one instruction may go through."""

WALK_LIMIT: Final = 32
"""Most walks over one module."""


def rewrite(module: Module, rules: RuleSet, *, namer: Namer | None = None, trace: Trace | None = None) -> Module:
    """The module, and the modules inside it, with `rules` applied until none fires; itself where none did.

    Raises InternalError, naming the rules, where they do not come to an end.
    """
    namer = namer or namer_of(module)
    table = _Table(rules)
    trace = trace or Trace()
    for _ in range(WALK_LIMIT):
        rewritten = _Walk(module, namer, table, trace).run()
        if rewritten is module:
            return module
        module = remove_dead_code(rewritten, namer)
        if not table.counts_uses:
            return module
    raise InternalError(
        f"rules still fire after {WALK_LIMIT} walks: {_last_rules(trace)}", where=f"module {module.name}"
    )


def _last_rules(trace: Trace) -> str:
    return ", ".join(dict.fromkeys(event.rule for event in trace.fired[-8:]))


class _Table:
    """Rules by the head of the instruction at their root."""

    def __init__(self, rules: RuleSet) -> None:
        self.counts_uses = rules.counts_uses()
        self._by_head: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule in rules.rules:
            for word in rule.pattern.heads or ():
                self._by_head[word].append(rule)

    def of(self, instruction: Instruction) -> list[Rule]:
        """The rules whose root may fit the instruction."""
        word, name = head(instruction), instruction.op.name
        found = self._by_head.get(word, [])
        return found if word == name else [*found, *self._by_head.get(name, [])]


class _Walk(Rebuild):
    def __init__(
        self,
        module: Module,
        namer: Namer,
        table: _Table,
        trace: Trace,
        substitution: Mapping[str, DimLike] | None = None,
    ) -> None:
        super().__init__(module, namer, substitution)
        self._table = table
        self._trace = trace
        self._chain: list[str] = []
        self._uses: Counter[Value] = Counter()
        if table.counts_uses:
            for instruction in module.instructions:
                self._uses.update(operand for operand in instruction.operands if operand is not None)
            self._uses.update(module.results)

    def body(self, module: Module) -> Module:
        return _Walk(module, self.namer, self._table, self._trace, self.substitution).run()

    def moved(self, old: Value, new: Value) -> None:
        if self._table.counts_uses:
            self._uses[new] += self._uses.pop(old, 0)

    def expanded(self, instruction: Instruction, body: Sequence[Instruction]) -> None:
        if self._table.counts_uses:
            for inner in body:
                self._uses.update(operand for operand in inner.operands if operand is not None)
            self._uses.subtract(self.value(operand) for operand in instruction.operands if operand is not None)

    def visit(self, instruction: Instruction) -> None:
        kept = self.keep(instruction)
        if kept is None:
            return
        for rule in self._table.of(kept):
            if self._trace.allows(rule.name) and self._try(rule, kept):
                return

    def _try(self, rule: Rule, root: Instruction) -> bool:
        """Apply `rule` at `root`, the instruction appended last, where it fits and does not decline."""
        pattern = rule.pattern
        for root_value in root.results:
            for captures in pattern.match(root_value, self._uses.__getitem__, {}):
                length = self.tape.length
                outcome = self._build(rule, root, captures)
                if outcome is not None and not isinstance(outcome, str):
                    values = outcome if isinstance(outcome, tuple) else (outcome,)
                    reason = self._misfit(root, values)
                    if not reason:
                        self._fire(rule, root, values, length)
                        return True
                    outcome = reason
                self.tape.take_back(length)
                if outcome is not None:
                    self._trace.add(Event(rule.name, node_name(root), outcome))
        return False

    def _build(self, rule: Rule, root: Instruction, captures: Mapping[str, Value]) -> Rewritten:
        self.tape.at(root.source)
        try:
            return rule.apply(self.tape, captures)
        except (MemoryError, OSError):
            raise
        except Exception as error:  # the model is not at fault either where a rule builds what contradicts itself
            what = error.what if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
            raise InternalError(what, where=f"rule {rule.name} at {node_name(root)}") from error
        finally:
            self.tape.at("")

    def _misfit(self, root: Instruction, values: tuple[Value, ...]) -> str:
        if len(values) != len(root.types):
            return f"the rule replaces {len(values)} of {len(root.types)} results"
        reasons = (self.misfit(root, old, new.type) for old, new in zip(root.types, values, strict=True))
        return next((reason for reason in reasons if reason), "")

    def _fire(self, rule: Rule, root: Instruction, values: tuple[Value, ...], length: int) -> None:
        """Replace `root` by `values`, and visit what the rule built since the tape had `length` instructions."""
        self._trace.add(Event(rule.name, node_name(root)))
        self._chain.append(rule.name)
        if len(self._chain) > DEPTH_LIMIT:
            loop = ", ".join(dict.fromkeys(self._chain[-8:]))
            raise InternalError(f"rules rewrite one instruction without end: {loop}", where=node_name(root))
        built = _live(self.tape.take_back(length), values)
        self.tape.take_back(length - 1)
        if any(value.instruction is root for value in values) or any(
            operand is not None and operand.instruction is root for new in built for operand in new.operands
        ):
            raise InternalError(f"the rule {rule.name} builds on what it replaces", where=node_name(root))
        if self._table.counts_uses:
            self._uses.update(operand for new in built for operand in new.operands if operand is not None)
        named = _take_names(root, values, set(built))
        for old, new in zip(root.results, values, strict=True):
            self.moved(old, new)
        if self._table.counts_uses:
            self._release(root)
        for instruction in built:
            renamed = instruction
            if instruction in named:
                renamed = dataclasses.replace(instruction, names=named[instruction])
                for old, new in zip(instruction.results, renamed.results, strict=True):
                    self._values[old] = new
                    self.moved(old, new)
            self.visit(renamed)
        self.replace(root, [self.value(value) for value in values])
        self._chain.pop()

    def _release(self, root: Instruction) -> None:
        """`root` is gone: what it alone has used is unused now, and so on upwards."""
        pending = [root]
        while pending:
            gone = pending.pop()
            for operand in gone.operands:
                if operand is not None:
                    self._uses[operand] -= 1
                    if not any(self._uses[result] for result in operand.instruction.results):
                        pending.append(operand.instruction)


def _live(built: list[Instruction], values: tuple[Value, ...]) -> list[Instruction]:
    """Those of the instructions that a rule built that its values need, in order."""
    needed = {value.instruction for value in values}
    for instruction in reversed(built):
        if instruction in needed:
            needed.update(operand.instruction for operand in instruction.operands if operand is not None)
    return [instruction for instruction in built if instruction in needed]


def _take_names(
    root: Instruction, values: tuple[Value, ...], built: set[Instruction]
) -> dict[Instruction, tuple[str, ...]]:
    """Result names of `root` for the new instructions that make its values."""
    named: dict[Instruction, tuple[str, ...]] = {}
    for old, new in zip(root.results, values, strict=True):
        maker = new.instruction
        if maker in built and old.name and not new.name:
            names = list(named.get(maker, maker.names))
            names.extend([""] * (len(maker.types) - len(names)))
            names[new.index] = old.name
            named[maker] = tuple(names)
    return named

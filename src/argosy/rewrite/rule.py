"""Rules: a pattern, what it becomes, and why it may.

    @rule(pointwise("mul", any_("x"), constant("one", uniform=True)))
    def multiply_by_one(x: Value, one: Value) -> Rewritten:
        \"\"\"x * 1 = x

        Exact: IEEE multiplication by one returns its argument, NaN and -0 included.
        \"\"\"
        return x if item(one) == 1 else None

The first line of the docstring is the equation, the rest says why it is exact. A rule takes the captures
that it names, and `build`, a Builder, if it makes instructions. It returns what replaces the matched value,
or a sentence that says why it declines what it is for, or None where there is nothing of the kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from argosy.errors import InternalError
from argosy.ir.builder import Builder
from argosy.ir.module import Value
from argosy.rewrite.pattern import Pattern

__all__ = ["Rewritten", "Rule", "RuleSet", "rule"]

Rewritten: TypeAlias = Value | tuple[Value, ...] | str | None
"""What replaces the value (a tuple: all results of its instruction); or why the rule declines; or None where
there is nothing to tell, since what the rule is for is not there at all."""

Condition: TypeAlias = Callable[..., str | None]
"""Takes the captures; returns why the rule declines, or None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: `pattern` becomes what `build` makes of its captures, unless `condition` gives a reason not to.

    `exact` claims equal bits for every input (which NaN comes out apart); the numeric test holds it to that.
    """

    name: str
    equation: str
    pattern: Pattern
    build: Callable[..., Rewritten]
    parameters: tuple[str, ...]
    condition: Condition | None = None
    exact: bool = True

    def apply(self, build: Builder, captures: Mapping[str, Value]) -> Rewritten:
        """What the rule makes of its captures, or why it declines."""
        if self.condition is not None:
            reason = self.condition(**captures)
            if reason:
                return reason
        given: dict[str, Any] = {name: build if name == "build" else captures[name] for name in self.parameters}
        return self.build(**given)

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self.equation}>"


def rule(
    pattern: Pattern, *, when: Condition | None = None, exact: bool = True
) -> Callable[[Callable[..., Rewritten]], Rule]:
    """Declare a rule. `when` gets the captures as keyword arguments and returns a reason to decline, or None."""

    def declare(build: Callable[..., Rewritten]) -> Rule:
        text = inspect.getdoc(build) or ""
        equation = text.partition("\n")[0]
        if not equation:
            raise InternalError(f"the rule {build.__name__} has no equation", hint="make it the docstring's first line")
        if not pattern.heads:
            raise InternalError(f"the pattern of rule {build.__name__} fits any value", hint="start it with an op")
        parameters = tuple(inspect.signature(build).parameters)
        unknown = set(parameters) - {"build"} - set(pattern.captured())
        if unknown:
            raise InternalError(
                f"the rule {build.__name__} takes {', '.join(unknown)}, which its pattern does not bind"
            )
        return Rule(build.__name__, equation, pattern, build, parameters, when, exact)

    return declare


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules in the order in which they are tried. Sets add with `+`."""

    rules: tuple[Rule, ...] = ()

    @staticmethod
    def collect(namespace: Mapping[str, Any]) -> RuleSet:
        """All the rules of a module, in the order of declaration: `RULES = RuleSet.collect(vars())`."""
        return RuleSet(tuple(entry for entry in namespace.values() if isinstance(entry, Rule)))

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.rules]
        if len(set(names)) != len(names):
            raise InternalError(f"two rules have one name: {', '.join(sorted(n for n in names if names.count(n) > 1))}")

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def counts_uses(self) -> bool:
        """Whether any rule asks how often a value is used."""
        return any(entry.pattern.counts_uses() for entry in self.rules)

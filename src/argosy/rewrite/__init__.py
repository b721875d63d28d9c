"""How to say "this becomes that": patterns, rules, and the engine that applies them."""

from argosy.rewrite.dead_code import remove_dead_code
from argosy.rewrite.engine import rewrite
from argosy.rewrite.rebuild import namer_of, transform
from argosy.rewrite.rule import Rewritten, Rule, RuleSet, rule
from argosy.rewrite.trace import Event, Trace

__all__ = [
    "Event",
    "Rewritten",
    "Rule",
    "RuleSet",
    "Trace",
    "namer_of",
    "remove_dead_code",
    "rewrite",
    "rule",
    "transform",
]

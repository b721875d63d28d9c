"""Every rule against numpy: programs in which its pattern occurs, evaluated before and after."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from argosy.errors import ArgosyError
from argosy.ir.validate import validate
from argosy.rewrite import Rule, RuleSet, Trace, rewrite
from argosy.rewrite.rules import algebra, attributes, conversions, parts, views
from tests.rewrite.sampling import Discard, Program, Sampler, run, same_bits

RULES = algebra.RULES + conversions.RULES + attributes.RULES + views.RULES + parts.RULES
FIRINGS = 25
TRIES = 4000


def samples(rule: Rule, *, symbolic: bool) -> tuple[int, int]:
    """Check firings of a rule; returns how many there were in how many programs."""
    fired = 0
    for seed in range(TRIES):
        sampler = Sampler(Random(f"{rule.name} {seed}"), symbolic)
        try:
            program = sampler.matching(rule.pattern)
            expected = run(program)
        except (Discard, ArgosyError, IndexError):
            continue
        fired += check(rule, program, expected)
        if fired >= FIRINGS:
            return fired, seed
    return fired, TRIES


def check(rule: Rule, program: Program, expected: tuple[np.ndarray, ...]) -> bool:
    """Apply the rule; whether it fired. The results must stay as they were."""
    trace = Trace()
    after = rewrite(program.module, RuleSet((rule,)), trace=trace)
    assert bool(trace.fired) == (after is not program.module)
    if not trace.fired:
        return False
    validate(after)
    for before, result in zip(expected, run(program, after), strict=True):
        if rule.exact:
            assert same_bits(before, result), f"{rule}: {before} became {result}"
        else:
            assert before.dtype == result.dtype
            # ulps of the type; near the least normal number, where there are fewer, absolutely
            limits = np.finfo(before.dtype) if before.dtype.kind == "f" else None
            tolerance = float(limits.eps) if limits else 2.0**-7
            np.testing.assert_allclose(
                result.astype(np.float64),
                before.astype(np.float64),
                rtol=tolerance,
                atol=float(limits.tiny) if limits else 1e-38,
            )
    return True


@pytest.mark.parametrize("rule", RULES.rules, ids=lambda rule: rule.name)
def test_rule_keeps_every_value(rule: Rule) -> None:
    fired, _ = samples(rule, symbolic=False)
    assert fired >= 20, f"{rule} fired {fired} times only: the sampler does not reach it"


@pytest.mark.parametrize("rule", (attributes.RULES + views.RULES + parts.RULES).rules, ids=lambda rule: rule.name)
def test_rule_keeps_every_value_where_dims_are_symbols(rule: Rule) -> None:
    fired, _ = samples(rule, symbolic=True)
    assert fired >= 20


def test_every_rule_states_an_equation() -> None:
    for rule in RULES.rules:
        assert " = " in rule.equation, rule.name

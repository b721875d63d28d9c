"""Mistakes that are made on purpose in kernels of the catalogue are found."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from argosy.emulation.c_engine.build import engine_reason
from tests.emulation.mutations import KINDS, Judge, Mutant, mutants

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton is not installed"),
    pytest.mark.skipif(bool(engine_reason()), reason=engine_reason()),
]

_SEED = 1
_NIGHTLY = {"bert_small": 7, "resnet_small": 7, "lstm_small": 6}
"""Mutants of each kind on each arch: 200 in all."""


def judged(judge: Judge, kind: str, count: int) -> Iterator[tuple[Mutant, str]]:
    """The first mutants of a kind that are not equivalent, and how each is caught."""
    counted = (
        each for each in mutants(judge.model, judge.arch, judge.texts, kind, _SEED) if not judge.equivalent(each)
    )
    return ((each, judge.found(each)) for each in islice(counted, count))


def test_a_sample_is_found() -> None:
    judge = Judge("bert_small", "gfx942", "fp32")
    found = [each for kind in KINDS for each in judged(judge, kind, 2)]
    assert len(found) >= 8
    assert sum(bool(how) for _, how in found) >= 0.9 * len(found), [str(mutant) for mutant, how in found if not how]


@pytest.mark.nightly
def test_most_mutants_are_found() -> None:
    table: Counter[tuple[str, bool]] = Counter()
    missed = []
    for arch in ("gfx942", "gfx1100"):
        for model, count in _NIGHTLY.items():
            judge = Judge(model, arch, "fp32")
            for kind in KINDS:
                for mutant, how in judged(judge, kind, count):
                    table[kind, bool(how)] += 1
                    missed += [] if how else [str(mutant)]
    told = "\n".join(
        [*(f"{kind}: {table[kind, True]} of {table[kind, True] + table[kind, False]}" for kind in KINDS), *missed]
    )
    print(told)  # noqa: T201 - the table is what the night is for
    assert table.total() >= 190, told
    assert len(missed) <= 0.05 * table.total(), told

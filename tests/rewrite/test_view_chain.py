"""Access maps of chains of views against numpy: the map reads what the views give."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.errors import ArgosyError
from argosy.ir import Value
from argosy.ir.dtype import FLOAT32
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze
from argosy.passes.manager import PassContext
from argosy.passes.normalize_attributes import NormalizeAttributes
from argosy.rewrite.view_chain import ViewChain, see_through
from tests.rewrite.sampling import SIZES, Discard, Program, Sampler, run, same_bits

VIEWS = (Reshape, Transpose, Broadcast, Squeeze, Unsqueeze, Slice, Pad)


def chain_of(random: Random, *, symbolic: bool) -> Program | None:
    """A program of up to six views of one input, in normal form."""
    sampler = Sampler(random, symbolic)
    value = sampler.leaf(FLOAT32, sampler.dims())
    for _ in range(random.randint(1, 6)):
        try:
            grown = sampler.view(value, random.choice(VIEWS))
        except (Discard, ArgosyError, IndexError):
            continue
        if grown.rank < 6 and all(not isinstance(dim, int) or dim < 40 for dim in grown.shape):
            value = grown
    program = sampler.program(value)
    try:
        run(program)
    except ArgosyError:
        return None
    module = NormalizeAttributes().run(program.module, PassContext.of(program.module))
    return Program(module, program.arguments)


def read(program: Program, chain: ViewChain) -> np.ndarray:
    """What the chain's map makes of its source's value."""
    wanted = [chain.source, *([] if chain.fill is None else [chain.fill])]
    module = program.module
    values = run(
        program,
        type(module)(module.name, module.parameters, module.instructions, tuple(wanted), ("x", "fill")[: len(wanted)]),
    )
    return chain.access.apply(values[0], SIZES, values[1] if len(values) > 1 else 0)


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_map_reads_what_the_views_give(symbolic: bool, random: Random) -> None:
    program = chain_of(random, symbolic=symbolic)
    if program is None:
        return
    value: Value = program.module.results[0]
    assert same_bits(run(program)[0], read(program, see_through(value)))


def test_random_chains_are_seen_through_to_their_input() -> None:
    """Most of the samples above must test something: their chain reaches the input by several views."""
    programs = [chain_of(Random(seed), symbolic=False) for seed in range(200)]
    whole = [p for p in programs if p and see_through(p.module.results[0]).source.instruction in p.module.parameters]
    assert len(whole) > 100
    assert sum(len(program.module.instructions) > 2 for program in whole) > 50

"""Prepared weights that several variants of one session have in common: made by the first, read by all.

Specialised variants differ in sizes that most weights know nothing of, so they prepare most weights alike. What a
prepared buffer holds depends on the kernels that make it, which are named by a hash of their text, and on the weights
that these read: a *recipe* names both, and equal recipes make equal bytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import Block, CallStep, PlanRecord, PointerArgument, StraightBlock, steps_in
from argosy.runtime.layout import Resident

__all__ = ["Prepared", "SharedWeights", "missing_steps", "recipes"]


class Prepared(msgspec.Struct, frozen=True):
    """A prepared buffer: its memory, and its value as host steps see it, where they can."""

    memory: Resident
    value: Any


class SharedWeights:
    """The prepared buffers of a session, by recipe. Filled while the session loads variants, one at a time."""

    def __init__(self) -> None:
        self._held: dict[str, Prepared] = {}

    def find(self, names: Mapping[int, str]) -> dict[int, Prepared]:
        """Those of a plan's buffers that are there, from the recipe of each."""
        return {number: self._held[name] for number, name in names.items() if name in self._held}

    def add(self, name: str, prepared: Prepared) -> None:
        """Keep a buffer for other variants."""
        self._held.setdefault(name, prepared)


def recipes(plan: PlanRecord, variant: VariantRecord) -> dict[int, str]:
    """The recipe of each prepared buffer of a variant's plan.

    None where more than calls prepares weights, or where buffers are written twice or lie within others.
    """
    blocks = [block for entry in plan.prepare for block in entry.body]
    steps = [step for step in steps_in(blocks) if isinstance(step, CallStep)]
    writes = Counter(number for step in steps for number in step.writes)
    touched = {number for step in steps for number in (*step.reads, *step.writes)}
    if not _only_calls(blocks) or any(count > 1 for count in writes.values()):
        return {}
    if any(plan.buffers[number].base is not None for number in touched):
        return {}
    # Of one compile, but for the sizes: the same level, options and toolchain.
    common = msgspec.structs.replace(variant, key="", words="", dims={})
    found = {n: _hash(b.type, b.literal) for n, b in enumerate(plan.buffers) if b.kind == "weight"}
    for step in steps:
        if any(number not in found for number in step.reads):
            return {}
        made = {number: place for place, number in enumerate(step.writes)}
        arguments = [
            (a.offset, a.shift, found.get(a.buffer), made.get(a.buffer)) if isinstance(a, PointerArgument) else a
            for a in step.arguments
        ]
        call = _hash(common, step.entry, step.chunks, step.parameter_bytes, step.scratch, arguments)
        found |= {number: _hash(call, place, plan.buffers[number].type) for number, place in made.items()}
    # A call is not repeated for one of its results while another is being read.
    whole = [step for step in steps if all(plan.buffers[number].kind == "prepared" for number in step.writes)]
    return {number: found[number] for step in whole for number in step.writes}


def missing_steps(blocks: Sequence[Block], results: Iterable[int], at_hand: Collection[int]) -> tuple[Block, ...]:
    """What of a prepare module, all of it calls, makes these `results` from weights and from what is `at_hand`."""
    kept: list[CallStep] = []
    wanted = set(results)
    for step in reversed([step for step in steps_in(blocks) if isinstance(step, CallStep)]):
        if wanted.intersection(step.writes):
            kept.append(step)
            wanted |= set(step.reads) - set(at_hand)
    return (StraightBlock(tuple(reversed(kept))),) if kept else ()


def _only_calls(blocks: Sequence[Block]) -> bool:
    straight = all(isinstance(block, StraightBlock) for block in blocks)
    return straight and all(isinstance(step, CallStep) for step in steps_in(blocks))


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()

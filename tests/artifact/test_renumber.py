"""Buffers get other numbers so that bases come before their views; everything that names a buffer follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from argosy.artifact.plan import PlanRecord
from argosy.artifact.plan_check import check_plan
from argosy.artifact.renumber import bases_first
from tests.artifact import samples

BUFFERS = frozenset(
    {"buffer", "base", "results", "operands", "reads", "writes", "origin", "destination", "condition", "initial",
     "current", "next", "final", "result", "trip_count", "next_condition", "iteration"}
)  # fmt: skip
"""Fields of a plan that hold numbers of buffers, and `element` of a collected value."""


def mapped(value: Any, change: Callable[[int], Any], *, names_buffers: bool = False) -> Any:
    """A plan as plain data with another entry for each number of a buffer."""
    if isinstance(value, dict):
        return {
            name: mapped(item, change, names_buffers=name in BUFFERS or (name == "element" and "result" in value))
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mapped(item, change, names_buffers=names_buffers) for item in value]
    return change(value) if names_buffers and isinstance(value, int) else value


def told(plan: PlanRecord) -> Any:
    """A plan with buffers themselves in place of their numbers, and without their list."""

    def buffer(number: int) -> Any:
        record = msgspec.to_builtins(plan.buffers[number])
        return {**record, "base": None if record.get("base") is None else buffer(record["base"])}

    data = msgspec.to_builtins(plan)
    del data["buffers"]
    return mapped(data, buffer)


def test_plans_in_order_stay_as_they_are() -> None:
    plan = samples.plan()
    assert bases_first(plan) is plan


def test_views_before_their_bases_are_put_behind_them() -> None:
    plan = samples.plan()
    view = next(number for number, buffer in enumerate(plan.buffers) if buffer.base is not None)
    base = plan.buffers[view].base
    assert base is not None
    swap = {base: view, view: base}
    data = mapped(msgspec.to_builtins(plan), lambda number: swap.get(number, number))
    data["buffers"] = [data["buffers"][swap.get(number, number)] for number in range(len(plan.buffers))]
    swapped = msgspec.convert(data, PlanRecord)
    assert told(swapped) == told(plan)
    mended = bases_first(swapped)
    check_plan(mended, "plan")
    assert told(mended) == told(plan)

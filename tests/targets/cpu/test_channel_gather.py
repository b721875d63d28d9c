"""Which views of blocked images are known to leave each channel whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argosy.ir import Builder, TensorType, Value
from argosy.ir.dtype import FLOAT32
from argosy.ops.slicing import Slice
from argosy.ops.view import Broadcast, Reshape, Transpose
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager
from argosy.targets.cpu.codegen.channel_gather import gathers_channels


def shuffle(build: Builder, x: Value) -> Value:
    """Channels that were groups of three become three to a group."""
    turned = build.add(Transpose((0, 2, 1, 3, 4)), build.add(Reshape((2, 8, 3, 5, 6)), x))
    return build.add(Reshape((2, 24, 5, 6)), build.pointwise(lambda v: v.max(0.0), turned))


CASES: list[tuple[str, Callable[[Builder, Value], Value], bool]] = [
    ("a shuffle", shuffle, True),
    ("a piece", lambda build, x: build.add(Slice((3,), (20,), (1,)), x), True),
    ("every other, backwards", lambda build, x: build.add(Slice((23,), (-25,), (1,), (-2,)), x), True),
    ("two pieces added", lambda build, x: build.pointwise("add", *(
        build.add(Slice((start,), (start + 9,), (1,)), x) for start in (2, 11))), True),
    ("a piece of each line", lambda build, x: build.add(Slice((1,), (4,), (3,)), x), False),
    ("lines and columns exchanged", lambda build, x: build.add(Transpose((0, 1, 3, 2)), x), False),
    ("images as channels", lambda build, x: build.add(Transpose((1, 0, 2, 3)), x), False),
    ("images joined", lambda build, x: build.add(Reshape((1, 48, 5, 6)), x), False),
    ("one channel for all", lambda build, x: build.add(
        Broadcast((2, 24, 5, 6)), build.add(Slice((1,), (2,), (1,)), x)), True),
]  # fmt: skip


@pytest.mark.parametrize(("note", "view", "expected"), CASES, ids=[case[0] for case in CASES])
def test_views(note: str, view: Callable[[Builder, Value], Value], *, expected: bool) -> None:
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (2, 24, 5, 6)))
    module = PassManager((NORMALISE,)).run(build.module({"y": view(build, x)}))
    assert gathers_channels(module) == expected, note

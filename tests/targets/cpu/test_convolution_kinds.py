"""Convolutions of every kind on the CPU agree with ONNX Runtime, and none is left to plain loops."""

from __future__ import annotations

import pytest

import argosy
from argosy.ir import Builder, Module, Program
from argosy.ops.convolution import ConvTranspose
from argosy.ops.slicing import Pad
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler
from tests.targets.cpu.test_convolution import convolution, image, weights

pytestmark = needs_compiler


def kernel_names(module: Module) -> set[str]:
    """What the kernels of a module are called, without their hashes."""
    (variant,) = (artifact := argosy.compile(Program(module), targets=("cpu",), strict=True)).variants
    plan = artifact.plan(variant.key)
    calls = [step for block in plan.body for step in getattr(block, "steps", ())]
    return {call.entry.rsplit("_", 1)[0] for call in calls if hasattr(call, "entry")}


@pytest.mark.parametrize("order", ["turned", "reflected"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "transposed"])
def test_an_operand_behind_it_in_another_order(order: str, *, symbolic: bool, transposed: bool) -> None:
    """What no tile can add is added by loops; the convolution is done in tiles all the same."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", [1, 24, "length" if symbolic else 30])
    if transposed:
        made = build.add(ConvTranspose((1,), (1, 1), (1,)), x, build.constant(weights((24, 20, 3))))
    else:
        made = build.add(convolution(3, {"pads": 1}), x, build.constant(weights((20, 24, 3))))
    length = made.shape[2]
    if order == "turned":
        rest = build.tensor_parameter("rest", "float32", [length, 1, 20])
        seen = build.add(Transpose((1, 2, 0)), rest)
        other = image((30, 1, 20))
    else:
        rest = build.tensor_parameter("rest", "float32", [1, 20, length - 1])
        seen = build.add(Pad("reflect", (0, 0, 1, 0, 0, 0)), rest)
        other = image((1, 20, 29))
    module = build.module({"y": build.pointwise(lambda a, b: (a + b).max(0.0) * 1.5, made, seen)})
    check(module, [([image((1, 24, 30)), other], {"length": 30} if symbolic else {})])
    assert not any("loops" in name for name in kernel_names(module))

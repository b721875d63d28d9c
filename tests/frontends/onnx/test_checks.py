"""Shapes that subgraphs declare, against those that they have."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from tests.frontends.onnx.one_node import program, run

IF = """
g (bool c, float[2, 4] y) => (float[2, 4] r) {{
  r = If (c) <then_branch = t () => ({then}) {{ a = Neg(y) }}, else_branch = e () => (float[2, 4] b) {{ b = Abs(y) }}>
}}
"""
SCAN = """
g (float[2] s, float[3, 2] x) => (float[2] f, float[3, 2] o) {{
  f, o = Scan <num_scan_inputs = 1, body = b (float[2] h, {declared}) => (float[2] h2, float[2] y) {{
    h2 = Add(h, e)  y = Identity(h2)
  }}> (s, x)
}}
"""


def parse(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 17]> {graph}')


@pytest.mark.parametrize("then", ["float[2, 4] a", "float[2, n] a", "float[N, M] a", "float a"])
def test_branches_that_declare_no_other_shape(then: str) -> None:
    model = parse(IF.format(then=then))
    if then == "float a":
        model.graph.node[0].attribute[0].g.output[0].type.tensor_type.ClearField("shape")
    assert str(load(model).outputs["r"]) == "float32[2, 4]"


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("float[2, 3] a", r"the output of then_branch 'a' is declared \[2, 3\], but has the shape \[2, 4\]"),
        ("float[n, 3] a", r"declared \[\?, 3\]"),
        ("float[2] a", r"declared \[2\]"),
    ],
)
def test_branches_that_contradict_themselves(then: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        load(parse(IF.format(then=then)))


def test_scanned_elements() -> None:
    load(parse(SCAN.format(declared="float[2] e")))
    with pytest.raises(ModelError, match=r"the input of the body 'e' is declared \[3, 2\], but has the shape \[2\]"):
        load(parse(SCAN.format(declared="float[3, 2] e")))


X = np.arange(15, dtype=np.float32).reshape(3, 1, 5, 1)


@pytest.mark.parametrize("constant", [(), (1,)])
def test_no_axes_at_all_squeeze_every_axis(constant: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(run("Squeeze", X, np.zeros(0, np.int64), constant=constant), X[:, 0, :, 0])
    np.testing.assert_array_equal(run("Squeeze", X, opset=11), X[:, 0, :, 0])


def test_a_block_size_that_follows(caplog: pytest.LogCaptureFixture) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for scale, size in ((np.full((2, 4), 0.5, np.float32), 1), (np.array([[0.5], [2.0]], np.float32), 4)):
        zero = np.zeros(scale.shape, np.int8)
        found = run("QuantizeLinear", x, scale, zero, opset=21)
        np.testing.assert_array_equal(found, run("QuantizeLinear", x, scale, zero, opset=21, block_size=size))
        assert f"block_size is missing; taken as {size}, which alone fits" in caplog.text


def test_a_block_size_that_does_not_follow() -> None:
    x, scale = np.zeros((2, 4), np.float32), np.ones((2, 2), np.float32)
    with pytest.raises(ModelError, match=r"block_size is missing: 2 to 3 fit float32\[2, 4\]"):
        program("QuantizeLinear", [x, scale, np.zeros((2, 2), np.int8)], opset=21)


def test_too_many_inputs() -> None:
    x, scale, zero = np.zeros(4, np.float32), np.float32(1), np.int8(0)
    with pytest.raises(ModelError, match="has 4 inputs, QuantizeLinear takes at most 3"):
        program("QuantizeLinear", [x, *(np.array(value) for value in (scale, zero, zero))])

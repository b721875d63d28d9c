"""Shapes as exporters compute them, node by node, must come out as the dims that one expects.

Each chain is imported with symbolic dims, its output types are compared as text, and it runs at two sizes
against the reference implementation of ONNX.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from argosy.frontends.onnx import load
from argosy.ir import Env, TensorType
from argosy.ir import dim as dims
from argosy.ir.interpreter import Interpreter

SIZES = ({"N": 2, "S": 6, "H": 8, "W": 5}, {"N": 1, "S": 3, "H": 2, "W": 4})


def check(body: str, *expected: str, inputs: str = "float[N, S, 768] x", opset: int = 18) -> None:
    """Import the nodes, which define y0, y1 …, and compare the output types, and the values at two sizes."""
    names = [f"y{index}" for index in range(len(expected))]
    outputs = ", ".join(f"float[] {name}" for name in names)
    text = f'<ir_version: 9, opset_import: ["": {opset}]> chain ({inputs}) => ({outputs}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.ClearField("type")
    program = load(model)
    assert [str(kind) for kind in program.outputs.values()] == list(expected)
    for sizes in SIZES:
        feeds = {}
        for name, kind in program.inputs.items():
            assert isinstance(kind, TensorType)
            shape = [dims.evaluate(dim, sizes) for dim in kind.shape]
            feeds[name] = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 17).astype(kind.dtype.numpy)
        found = Interpreter(program.main).run(list(feeds.values()), Env())
        wanted: list[NDArray[Any]] = ReferenceEvaluator(model).run(None, feeds)  # type: ignore[assignment]
        for result, value, kind in zip(found, wanted, program.outputs.values(), strict=True):
            np.testing.assert_array_equal(result, value)
            assert isinstance(kind, TensorType)
            assert [dims.evaluate(dim, sizes) for dim in kind.shape] == list(result.shape)


def test_split_heads() -> None:
    """BERT: the dims of x, gathered one by one, then [N, S, 12, 64]."""
    check(
        """
        shape = Shape(x)
        zero = Constant<value_int = 0>()  one = Constant<value_int = 1>()  axes = Constant<value_ints = [0]>()
        n = Gather(shape, zero)  s = Gather(shape, one)
        n1 = Unsqueeze(n, axes)  s1 = Unsqueeze(s, axes)
        heads = Constant<value_ints = [12]>()  size = Constant<value_ints = [64]>()
        target = Concat<axis = 0>(n1, s1, heads, size)
        split = Reshape(x, target)
        y0 = Transpose<perm = [0, 2, 1, 3]>(split)
        """,
        "float32[N, 12, S, 64]",
    )


def test_merge_heads_with_minus_one() -> None:
    check(
        """
        shape = Shape(x)
        start = Constant<value_ints = [0]>()  end = Constant<value_ints = [2]>()
        front = Slice(shape, start, end)
        rest = Constant<value_ints = [-1]>()
        target = Concat<axis = 0>(front, rest)
        y0 = Reshape(x, target)
        """,
        "float32[N, S, 768]",
        inputs="float[N, S, 12, 64] x",
    )


def test_flatten_all_but_the_last_axis() -> None:
    check("rest = Constant<value_ints = [-1, 768]>() y0 = Reshape(x, rest)", "float32[N*S, 768]")


def test_division_of_a_symbolic_dim() -> None:
    """Pixel unshuffle: H and W are halved with Div and Cast, channels grow fourfold."""
    check(
        """
        shape = Shape(x)
        i0 = Constant<value_ints = [0]>()  i2 = Constant<value_ints = [2]>()  i3 = Constant<value_ints = [3]>()
        n = Gather(shape, i0)  h = Gather(shape, i2)  w = Gather(shape, i3)
        two = Constant<value_ints = [2]>()
        h2 = Mul(h, two)  w2 = Mul(w, two)
        h3 = Div(h2, two)  w3 = Cast<to = 7>(w2)  w4 = Div(w3, two)
        c = Constant<value_ints = [3]>()
        target = Concat<axis = 0>(n, c, h3, w4)
        y0 = Reshape(x, target)
        """,
        "float32[N, 3, H, W]",
        inputs="float[N, 3, H, W] x",
    )


def test_expand_through_where_and_equal() -> None:
    """torch's expand: -1 entries are replaced by ones before Expand."""
    check(
        """
        shape = Shape(x)
        i1 = Constant<value_ints = [1]>()  i0 = Constant<value_ints = [0]>()
        s = Gather(shape, i1)  n = Gather(shape, i0)
        three = Constant<value_ints = [3]>()  keep = Constant<value_ints = [-1]>()
        target = Concat<axis = 0>(n, three, s, keep)
        count = Constant<value_ints = [4]>()
        ones = ConstantOfShape<value = int64[1] {1}>(count)
        minus = Constant<value_int = -1>()
        scaled = Mul(ones, minus)
        open = Equal(target, scaled)
        final = Where(open, ones, target)
        axes = Constant<value_ints = [1]>()
        column = Unsqueeze(x, axes)
        y0 = Expand(column, final)
        """,
        "float32[N, 3, S, 768]",
    )


def test_positions_by_range() -> None:
    check(
        """
        shape = Shape<start = 1, end = 2>(x)
        s = Squeeze(shape)
        zero = Constant<value_int = 0>()  one = Constant<value_int = 1>()
        positions = Range(zero, s, one)
        y0 = Cast<to = 1>(positions)
        axes = Constant<value_ints = [0]>()
        y1 = Unsqueeze(y0, axes)
        """,
        "float32[S]",
        "float32[1, S]",
    )


def test_zeros_of_a_computed_shape() -> None:
    check(
        """
        shape = Shape(x)
        i = Constant<value_ints = [0]>()
        n = Gather(shape, i)
        tail = Constant<value_ints = [4]>()
        target = Concat<axis = 0>(n, tail)
        y0 = ConstantOfShape<value = float[1] {2.5}>(target)
        """,
        "float32[N, 4]",
    )


def test_causal_mask() -> None:
    """A square mask made from one length: ConstantOfShape, Trilu, then sliced to the length again."""
    check(
        """
        shape = Shape<start = 1, end = 2>(x)
        square = Concat<axis = 0>(shape, shape)
        ones = ConstantOfShape<value = float[1] {1}>(square)
        mask = Trilu<upper = 0>(ones)
        zero = Constant<value_ints = [0]>()
        axes = Constant<value_ints = [1]>()
        y0 = Slice(mask, zero, shape, axes)
        """,
        "float32[S, S]",
    )


def test_padding_to_a_multiple() -> None:
    """(8 - S mod 8) mod 8 elements are put behind the sequence."""
    check(
        """
        shape = Shape<start = 1, end = 2>(x)
        eight = Constant<value_ints = [8]>()
        over = Mod(shape, eight)  short = Sub(eight, over)  missing = Mod(short, eight)
        front = Constant<value_ints = [0, 0, 0, 0]>()  none = Constant<value_ints = [0]>()
        pads = Concat<axis = 0>(front, missing, none)
        y0 = Pad(x, pads)
        """,
        "float32[N, S + mod(-mod(S, 8), 8), 768]",
    )


def test_cache_growth_and_split() -> None:
    """Keys after a cache; the new ones sliced off again."""
    check(
        """
        grown = Concat<axis = 1>(past, x)
        shape = Shape<start = 1, end = 2>(past)
        total = Shape<start = 1, end = 2>(grown)
        axes = Constant<value_ints = [1]>()
        y0 = Slice(grown, shape, total, axes)
        y1, y2 = Split<axis = 2, num_outputs = 2>(grown)
        """,
        "float32[N, S, 768]",
        "float32[N, H + S, 384]",
        "float32[N, H + S, 384]",
        inputs="float[N, H, 768] past, float[N, S, 768] x",
    )


def test_tile_by_a_dim() -> None:
    check(
        """
        shape = Shape<end = 1>(x)
        one = Constant<value_ints = [1]>()
        repeats = Concat<axis = 0>(shape, one)
        row = Constant<value = float[1, 3] {1, 2, 3}>()
        y0 = Tile(row, repeats)
        """,
        "float32[N, 3]",
    )


def test_number_of_elements() -> None:
    check(
        """
        size = Size(x)
        axes = Constant<value_ints = [0]>()
        count = Unsqueeze(size, axes)
        y0 = Reshape(x, count)
        """,
        "float32[768*N*S]",
    )


def test_range_of_older_exporters() -> None:
    """NonZero(ConstantOfShape(S)) counts to S."""
    check(
        """
        shape = Shape<start = 1, end = 2>(x)
        ones = ConstantOfShape<value = int64[1] {1}>(shape)
        places = NonZero(ones)
        row = Transpose(places)
        axes = Constant<value_ints = [1]>()
        flat = Squeeze(row, axes)
        y0 = Cast<to = 1>(flat)
        """,
        "float32[S]",
    )


def test_upsampled_sizes_in_floats_are_data() -> None:
    """A shape that goes through a float multiplication is not followed; ranks are, and values are right."""
    text = """
        <ir_version: 9, opset_import: ["": 18]> g (float[N, 2, H, W] x) => (float[] y) {
        shape = Shape<start = 2>(x) f = Cast<to = 1>(shape) half = Constant<value = float[1] {0.5}>()
        scaled = Mul(f, half) down = Floor(scaled) small = Cast<to = 7>(down)
        start = Constant<value_ints = [0, 0]>() axes = Constant<value_ints = [2, 3]>()
        y = Slice(x, start, small, axes) }"""
    model = onnx.parser.parse_model(text)
    program = load(model)
    (kind,) = program.outputs.values()
    assert isinstance(kind, TensorType)
    assert [str(dim) for dim in kind.shape[:2]] == ["N", "2"]
    x = np.ones((1, 2, 5, 7), np.float32)
    (found,) = Interpreter(program.main).run([x], Env())
    assert found.shape == (1, 2, 2, 3)


@pytest.mark.parametrize("constant", [True, False])
def test_a_known_condition_picks_its_branch(constant: bool) -> None:
    """torch's squeeze: If(dim == 1) Squeeze else Identity. The other branch would not even import."""
    width = "3" if constant else "W"
    text = f"""
        <ir_version: 9, opset_import: ["": 18]> g (float[N, {width}] x) => (float[] y) {{
        shape = Shape<start = 1>(x) one = Constant<value_ints = [1]>() same = Equal(shape, one)
        y = If(same) <then_branch = t () => (float[] a) {{ a = Squeeze(x, one) }},
                      else_branch = e () => (float[] b) {{ b = Identity(x) }}> }}"""
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.ClearField("type")
    (kind,) = load(model).outputs.values()
    assert str(kind) == ("float32[N, 3]" if constant else "float32[*]")

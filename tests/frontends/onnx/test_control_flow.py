"""If, Loop and Scan: types that change, captures from far out, empty loops, symbols that stay inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from numpy.typing import NDArray

import argosy
from argosy.errors import ArgosyError, BranchError, ModelError, UnsupportedError
from argosy.frontends.onnx import load
from argosy.ir import Env, TensorType
from argosy.ir.dim import symbols_in
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program

Array = NDArray[Any]


def program(text: str, opset: int = 18) -> Program:
    """The program of a graph in ONNX's text form, with the types of its outputs left to us."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')
    for output in model.graph.output:
        output.ClearField("type")
    return load(model)


def run(made: Program, *feeds: Any) -> list[Any]:
    return list(Interpreter(made.main).run([np.asarray(feed) for feed in feeds], Env()))


def types(made: Program) -> list[str]:
    return [str(kind) for kind in made.outputs.values()]


BRANCHES = """
g (bool c, float[N, 4] x) => (float[] y) {{
  y = If(c) <then_branch = t () => (float[] a) {{ {then} }}, else_branch = e () => (float[] b) {{ {other} }}>
}}"""


def test_branches_that_agree_keep_their_dims() -> None:
    made = program(BRANCHES.format(then="a = Neg(x)", other="b = Abs(x)"))
    assert types(made) == ["float32[N, 4]"]
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(run(made, True, x)[0], -x)
    np.testing.assert_array_equal(run(made, False, x)[0], x)


def test_dims_that_differ_become_fresh_ones() -> None:
    made = program(BRANCHES.format(then="a = Concat<axis = 0>(x, x)", other="b = Identity(x)"))
    (kind,) = made.outputs.values()
    assert isinstance(kind, TensorType)
    assert kind.shape[1] == 4
    assert "N" not in {symbol.name for symbol in symbols_in(kind.shape[0])}
    assert run(made, True, np.ones((3, 4), np.float32))[0].shape == (6, 4)


def test_ranks_that_differ_become_unknown() -> None:
    made = program(BRANCHES.format(then="a = Flatten<axis = 0>(x)", other="b = ReduceSum<keepdims = 0>(x)"))
    assert types(made) == ["float32[*]"]
    assert run(made, False, np.ones((2, 4), np.float32))[0] == 8


def test_element_types_must_agree() -> None:
    with pytest.raises(
        ModelError, match=r"result 0 is float32\[N, 4\] in then_branch and float64\[N, 4\] in else_branch"
    ):
        program(BRANCHES.format(then="a = Identity(x)", other="b = Cast<to = 11>(x)"))


UNFIT = """
g (bool c, float[N, M] x) => (float[N, R] y) {
  y = If(c) <
    then_branch = t () => (float[N, R] a) {
      w = Constant<value = float[4, 2] {1, 2, 3, 4, 5, 6, 7, 8}> ()
      a = MatMul(x, w)
    },
    else_branch = e () => (float[N, R] b) { b = Neg(x) }>
}"""


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_branch_that_contradicts_the_sizes_asked_for_fails_only_where_it_is_taken(target: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {UNFIT}')
    bound = argosy.load_onnx(model, dims={"N": 2, "M": 3})
    assert str(bound.inputs["x"]) == "float32[2, 3]"
    session = argosy.Session(argosy.compile(bound, targets=(target,)), device=target)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(session.run({"c": np.array(False), "x": x})["y"], -x)
    with pytest.raises(ArgosyError):
        session.run({"c": np.array(True), "x": x})


def test_a_branch_that_contradicts_the_model_itself_is_refused() -> None:
    with pytest.raises(BranchError, match="then_branch/MatMul"):
        argosy.load_onnx(onnx.parser.parse_model(
            f'<ir_version: 9, opset_import: ["": 18]> {UNFIT.replace("float[N, M] x", "float[N, 3] x")}'
        ))  # fmt: skip


def test_a_data_dependent_dim_does_not_leak() -> None:
    positive = """
        a = Compress<axis = 0>(x, positive)
        positive = Greater(rows, zero)  rows = ReduceSum<keepdims = 0>(x, axes)
        axes = Constant<value_ints = [1]>()  zero = Constant<value_float = 0.0>()
        """
    made = program(BRANCHES.format(then=positive, other="b = Identity(x)"))
    (branch, _) = next(step for step in made.main.instructions if step.op.name == "if").op.modules()
    (inside,) = (value.type for value in branch.results)
    (outside,) = made.outputs.values()
    assert isinstance(inside, TensorType)
    assert isinstance(outside, TensorType)
    assert not symbols_in(outside.shape[0]) & symbols_in(inside.shape[0])
    x = np.array([[1, 1, 1, 1], [-1, -1, -1, -1]], np.float32)
    assert run(made, True, x)[0].shape == (1, 4)


def test_captures_from_several_levels_out() -> None:
    made = program("""
        g (bool c, bool d, float[N] x) => (float[] y) {
          two = Constant<value_float = 2.0>()
          twice = Mul(x, two)
          y = If(c) <
            then_branch = t () => (float[] a) {
              a = If(d) <then_branch = tt () => (float[] aa) { aa = Add(twice, x) },
                         else_branch = te () => (float[] ab) { ab = Mul(twice, two) }> },
            else_branch = e () => (float[] b) { b = Identity(x) }>
        }""")
    assert types(made) == ["float32[N]"]
    x = np.arange(3, dtype=np.float32)
    for c, d, factor in ((True, True, 3), (True, False, 4), (False, True, 1)):
        np.testing.assert_array_equal(run(made, c, d, x)[0], factor * x)


LOOP = """
g (int64 trips, bool go, float[N, 2] x) => (float[] last, float[] all) {{
  last, all = Loop({trips}, {go}, x) <
    body = b (int64 i, bool c, float[] s) => (bool again, float[] next, float[] out) {{ {body} }}> }}"""
KEEP = "again = Identity(c) next = Add(s, x) out = ReduceSum<keepdims = 0>(s)"


def test_loop_with_a_trip_count() -> None:
    made = program(LOOP.format(trips="trips", go="", body=KEEP))
    last, every = made.outputs.values()
    assert str(last) == "float32[N, 2]"
    assert isinstance(every, TensorType)
    assert len(every.shape) == 1
    x = np.ones((3, 2), np.float32)
    final, scanned = run(made, 4, True, x)
    np.testing.assert_array_equal(final, 5 * x)
    np.testing.assert_array_equal(scanned, [6, 12, 18, 24])


def test_loop_without_an_iteration_keeps_dtype_and_rank() -> None:
    body = KEEP.replace("ReduceSum<keepdims = 0>(s)", "Cast<to = 10>(s)")
    made = program(LOOP.format(trips="trips", go="go", body=body))
    x = np.ones((3, 2), np.float32)
    for trips, go in ((0, True), (5, False), (-1, True)):
        final, scanned = run(made, trips, go, x)
        np.testing.assert_array_equal(final, x)
        assert scanned.shape == (0, 3, 2)
        assert scanned.dtype == np.float16


def test_loop_that_only_its_body_ends() -> None:
    body = """again = Less(sum, limit) limit = Constant<value_float = 20.0>() next = Add(s, x)
              sum = ReduceSum<keepdims = 0>(next) out = Identity(sum)"""
    made = program(LOOP.format(trips="", go="", body=body))
    final, scanned = run(made, 0, True, np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(scanned, [12, 18, 24])
    assert final[0, 0] == 4


def test_a_known_trip_count_is_the_length_of_the_scan_outputs() -> None:
    made = program("""
        g (float[N, 2] x) => (float[] last, float[] all) {
          shape = Shape<end = 1>(x) n = Squeeze(shape)
          last, all = Loop(n, , x) <body = b (int64 i, bool c, float[] s) => (bool again, float[] next, float[] out) {
            again = Constant<value = bool {1}>() next = Identity(s) out = Gather(x, i)
          }> }""")
    assert types(made) == ["float32[N, 2]", "float32[N, 2]"]
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run(made, x)[1], x)


def test_a_carried_value_that_grows_gets_a_dim_of_its_own() -> None:
    made = program(
        LOOP.format(trips="trips", go="", body="again = Identity(c) next = Concat<axis = 0>(s, x) out = Identity(x)")
    )
    last, _ = made.outputs.values()
    assert isinstance(last, TensorType)
    assert last.shape[1] == 2
    assert not isinstance(last.shape[0], int)
    assert {symbol.name for symbol in symbols_in(last.shape[0])} != {"N"}
    assert run(made, 3, True, np.ones((2, 2), np.float32))[0].shape == (8, 2)


def test_a_carried_value_whose_rank_changes_is_unranked() -> None:
    body = "again = Identity(c) next = Unsqueeze(s, zero) zero = Constant<value_ints = [0]>() out = Identity(x)"
    made = program(LOOP.format(trips="trips", go="", body=body))
    assert types(made)[0] == "float32[*]"
    assert run(made, 2, True, np.ones((3, 2), np.float32))[0].shape == (1, 1, 3, 2)


def test_a_carried_value_must_keep_its_element_type() -> None:
    with pytest.raises(ModelError, match="carried value 0 is float32.* before an iteration and int32"):
        program(LOOP.format(trips="trips", go="", body="again = Identity(c) next = Cast<to = 6>(s) out = Identity(x)"))


def test_a_carried_sequence() -> None:
    made = program("""
        g (int64 trips, float[N] x) => (float[] y) {
          empty = SequenceEmpty()
          parts = Loop(trips, , empty) <body = b (int64 i, bool c, seq(float[]) s) => (bool again, seq(float[]) more) {
            again = Identity(c) f = Cast<to = 1>(i) scaled = Mul(x, f) more = SequenceInsert(s, scaled)
          }>
          y = ConcatFromSequence<axis = 0>(parts) }""")
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(made, 3, x)[0], [0, 0, 1, 2, 2, 4])


def test_nested_loops_capture_what_the_outer_one_carries() -> None:
    made = program("""
        g (int64 n, float x) => (float y) {
          y = Loop(n, , x) <body = b (int64 i, bool c, float s) => (bool again, float next) {
            again = Identity(c)
            next = Loop(n, , s) <body = bb (int64 j, bool d, float t) => (bool more, float u) {
              more = Identity(d) k = Add(i, j) f = Cast<to = 1>(k) v = Add(t, f) w = Sub(v, s) u = Add(w, s)
            }> }> }""")
    assert run(made, 3, np.float32(1))[0] == 1 + sum(i + j for i in range(3) for j in range(3))


def test_scan_over_any_axis_in_any_direction() -> None:
    made = program("""
        g (float[B] s, float[B, T] x) => (float[] last, float[] sums) {
          last, sums = Scan<num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [1],
                            scan_input_directions = [1], scan_output_directions = [1],
            body = b (float[] a, float[] e) => (float[] next, float[] out) {
              next = Add(a, e) out = Identity(next) }>(s, x) }""")
    assert types(made) == ["float32[B]", "float32[B, T]"]
    s, x = np.zeros(2, np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    last, sums = run(made, s, x)
    np.testing.assert_array_equal(last, x.sum(1))
    np.testing.assert_array_equal(sums, np.cumsum(x[:, ::-1], 1)[:, ::-1])
    assert run(made, s, np.zeros((2, 0), np.float32))[1].shape == (2, 0)


def test_scan_of_opset_8_has_a_batch_axis() -> None:
    text = """
        g (float[B, 2] s, float[B, T, 2] x) => (float[] last, float[] sums) {{
          last, sums = Scan<num_scan_inputs = 1, directions = [1],
            body = b (float[] a, float[] e) => (float[] next, float[] out) {{
              next = Add(a, e) out = Identity(next) }}>({}, s, x) }}"""
    made = program(text.format(""), opset=8)
    assert types(made) == ["float32[B, 2]", "float32[B, T, 2]"]
    s, x = np.zeros((2, 2), np.float32), np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    last, sums = run(made, s, x)
    np.testing.assert_array_equal(last, x.sum(1))
    np.testing.assert_array_equal(sums, np.cumsum(x[:, ::-1], 1))
    with pytest.raises(UnsupportedError, match="sequence_lens"):
        program(text.format("lengths").replace("g (", "g (int64[B] lengths, "), opset=8)


def test_scan_inputs_of_different_lengths() -> None:
    text = """
        g (float[3] x, float[4] z) => (float[] y) {
          y = Scan<num_scan_inputs = 2, body = b (float a, float e) => (float o) { o = Add(a, e) }>(x, z) }"""
    with pytest.raises(ModelError, match="the scanned inputs have the lengths 3 and 4"):
        program(text)

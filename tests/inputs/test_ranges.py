"""What inputs must be is found from what reads them: ranges by hand, and models that run on what is generated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.inputs import InputRequest, make_inputs
from argosy.inputs.backwards import needs_of_operands
from argosy.inputs.need import Need, meet
from argosy.inputs.ranges import find_ranges
from argosy.ir.dtype import dtype
from argosy.ir.formula import Expr, Formula
from argosy.options import Dimensions

FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
ON = np.array([0, 1], np.float32)
TABLE = np.arange(60, dtype=np.float32).reshape(20, 3)


def model(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, list[Any]]],
    constants: Mapping[str, Any] | None = None,
    output: int = FLOAT,
    opset: int = 21,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def node(op: str, *inputs: str, to: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [to], name=op.lower(), **attributes)


def branches() -> onnx.ModelProto:
    """The index is captured by both branches, of which one shifts it."""
    picked = [node("Gather", "t", "i", to="p")]
    shifted = [node("Add", "i", "five", to="s"), node("Gather", "t", "s", to="q")]
    info = [helper.make_tensor_value_info(name, FLOAT, None) for name in "pq"]
    then, other = helper.make_graph(picked, "a", [], info[:1]), helper.make_graph(shifted, "b", [], info[1:])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return model(nodes, {"c": (BOOL, []), "i": (INT64, [4])}, {"t": TABLE, "five": np.int64(5)})


CASES: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "gather": (model([node("Gather", "t", "i")], {"i": (INT64, ["N"])}, {"t": TABLE}), {"i": (0, 19)}),
    "gather along the other axis": (
        model([node("Gather", "t", "i", axis=-1)], {"i": (INT32, [2])}, {"t": TABLE}),
        {"i": (0, 2)},
    ),
    "through views and casts": (
        model(
            [
                helper.make_node("Cast", ["x"], ["a"], to=INT64),
                node("Unsqueeze", "a", "zero", to="b"),
                node("Transpose", "b", to="c", perm=[1, 0]),
                node("Gather", "t", "c"),
            ],
            {"x": (FLOAT, ["N"])},
            {"t": TABLE, "zero": np.array([0])},
        ),
        {"x": (0, 19)},
    ),
    "shifted and scaled": (
        model(
            [node("Mul", "i", "two", to="a"), node("Add", "a", "one", to="b"), node("Gather", "t", "b")],
            {"i": (INT64, ["N"])},
            {"t": TABLE, "two": np.int64(2), "one": np.int64(1)},
        ),
        {"i": (0, 9)},
    ),
    "negative indices are counted from the front": (
        model(
            [
                node("Less", "i", "zero", to="n"),
                node("Add", "i", "size", to="w"),
                node("Where", "n", "w", "i", to="k"),
                node("Gather", "t", "k"),
            ],
            {"i": (INT64, ["N"])},
            {"t": TABLE, "zero": np.int64(0), "size": np.int64(20)},
        ),
        {"i": (0, 19)},
    ),
    "what is clipped needs nothing": (
        model(
            [node("Clip", "i", "zero", "last", to="c"), node("Gather", "t", "c")],
            {"i": (INT64, ["N"])},
            {"t": TABLE, "zero": np.int64(0), "last": np.int64(19)},
        ),
        {},
    ),
    "an axis of the run": (
        model([node("Gather", "x", "i")], {"x": (FLOAT, ["N", 2]), "i": (INT64, [3])}),
        {"i": (0, 5)},
    ),
    "the narrower of two": (
        model(
            [node("Gather", "t", "i", to="a"), node("Gather", "u", "i", to="b"), node("Add", "a", "b")],
            {"i": (INT64, [4])},
            {"t": TABLE, "u": TABLE[:7]},
        ),
        {"i": (0, 6)},
    ),
    "gather elements": (
        model([node("GatherElements", "t", "i", axis=1)], {"i": (INT64, [20, 2])}, {"t": TABLE}),
        {"i": (0, 2)},
    ),
    "gather nd": (model([node("GatherND", "t", "i")], {"i": (INT64, [4, 2])}, {"t": TABLE}), {"i": (0, 2)}),
    "scatter elements": (
        model([node("ScatterElements", "t", "i", "u", axis=0)], {"i": (INT64, [2, 3]), "u": (FLOAT, [2, 3])},
              {"t": TABLE}),
        {"i": (0, 19)},
    ),
    "scatter nd": (
        model([node("ScatterND", "t", "i", "u")], {"i": (INT64, [2, 1]), "u": (FLOAT, [2, 3])}, {"t": TABLE}),
        {"i": (0, 19)},
    ),
    "one hot": (
        model([node("OneHot", "i", "d", "v")], {"i": (INT64, [4])}, {"d": np.int64(9), "v": ON}),
        {"i": (0, 8)},
    ),
    "one hot, spelled out": (
        model(
            [node("Unsqueeze", "i", "last", to="u"), node("Equal", "u", "all", to="e"),
             helper.make_node("Cast", ["e"], ["y"], to=FLOAT)],
            {"i": (INT64, [4])},
            {"last": np.array([1]), "all": np.arange(9)},
        ),
        {"i": (0, 8)},
    ),
    "a depth": (
        model([node("OneHot", "i", "d", "v")], {"i": (INT64, [4]), "d": (INT64, [])}, {"v": ON}),
        {"d": (2, 8)},
    ),
    "lengths of sequences": (
        model(
            [helper.make_node("GRU", ["x", "w", "r", "", "l"], ["y"], hidden_size=2)],
            {"x": (FLOAT, [7, "N", 3]), "l": (INT32, ["N"])},
            {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)},
        ),
        {"l": (1, 7)},
    ),
    "reverse": (
        model([node("ReverseSequence", "x", "l", batch_axis=0, time_axis=1)],
              {"x": (FLOAT, [2, 5]), "l": (INT64, [2])}),
        {"l": (1, 5)},
    ),
    "k": (
        model([helper.make_node("TopK", ["x", "k"], ["y", "_"], axis=1)], {"x": (FLOAT, [2, 5]), "k": (INT64, [1])}),
        {"k": (1, 5)},
    ),
    "reshape": (
        model([node("Reshape", "x", "s")], {"x": (FLOAT, ["N", 2, 3]), "s": (INT64, [2])}),
        {"s": [12, 3]},
    ),
    "expand": (
        model([node("Expand", "x", "s")], {"x": (FLOAT, [1, 3]), "s": (INT64, [3])}),
        {"s": [2, 2, 3]},
    ),
    "tile": (model([node("Tile", "x", "r")], {"x": (FLOAT, [2, 3]), "r": (INT64, [2])}), {"r": (1, 2)}),
    "slice": (
        model(
            [node("Slice", "x", "b", "e", "a", "s")],
            {"x": (FLOAT, [8, 6]), **{name: (INT64, [2]) for name in "beas"}},
        ),
        {"b": (0, 3), "e": (4, 6), "a": [0, 1], "s": (1, 2)},
    ),
    "split": (
        model([helper.make_node("Split", ["x", "s"], ["y", "z"])], {"x": (FLOAT, [5]), "s": (INT64, [2])}),
        {"s": [2, 3]},
    ),
    "range": (
        model([node("Range", "a", "b", "c")], {name: (INT64, []) for name in "abc"}, output=INT64),
        {"a": (0, 1), "b": (2, 8), "c": (1, 2)},
    ),
    "axes to squeeze": (
        model([node("Squeeze", "x", "a")], {"x": (FLOAT, [3, 1, 2, 1]), "a": (INT64, [2])}),
        {"a": [1, 3]},
    ),
    "axes to reduce": (
        model([node("ReduceSum", "x", "a")], {"x": (FLOAT, [3, 2]), "a": (INT64, [2])}),
        {"a": [0, 1]},
    ),
    "an axis to sum along": (
        model([node("CumSum", "x", "a")], {"x": (FLOAT, [3, 2, 2]), "a": (INT64, [])}),
        {"a": (0, 2)},
    ),
    "sizes to resize to": (
        model([helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")],
              {"x": (FLOAT, [1, 2, 3, 4]), "s": (INT64, [4])}),
        {"s": [1, 2, 6, 8]},
    ),
    "limits of a suppression": (
        model(
            [node("NonMaxSuppression", "b", "s", "k", "o", "m")],
            {"b": (FLOAT, [1, 6, 4]), "s": (FLOAT, [1, 1, 6]), "k": (INT64, []), "o": (FLOAT, []), "m": (FLOAT, [])},
            output=INT64,
        ),
        {"k": (1, 6), "o": (0, 1), "m": (0, 0.5)},
    ),
    "images of regions": (
        model(
            [node("RoiAlign", "x", "r", "i", output_height=2, output_width=2)],
            {"x": (FLOAT, [3, 1, 8, 9]), "r": (FLOAT, [4, 4]), "i": (INT64, [4])},
        ),
        {"r": (0, 8), "i": (0, 2)},
    ),
    "logarithms and roots": (
        model(
            [
                node("Reshape", "x", "s", to="v"),
                node("Log", "v", to="a"),
                node("Sqrt", "z", to="b"),
                node("Acosh", "w", to="c"),
                node("Sum", "a", "b", "c"),
            ],
            {"x": (FLOAT, [2, 3]), "z": (FLOAT, [6]), "w": (FLOAT, [6])},
            {"s": np.array([6])},
        ),
        {"x": (0, 1), "z": (0, 1), "w": (1, 2)},
    ),
    "probabilities": (model([node("Bernoulli", "x", seed=1.0)], {"x": (FLOAT, [50])}), {"x": (0, 1)}),
    "captured by branches": (branches(), {"i": (0, 14)}),
    "keys": (
        model(
            [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[3, 4, 9],
                              values_floats=[0.1, 0.2, 0.3], default_float=-1.0)],
            {"x": (INT64, [5])},
        ),
        {"x": (3, 9)},
    ),
    "nothing": (model([node("Add", "x", "x")], {"x": (INT64, [5])}, output=INT64), {}),
}  # fmt: skip


THEIR_FAULTS = ("images of regions", "limits of a suppression", "lengths of sequences")
"""What onnx.reference does not compute: it reads no lengths, and takes no limits as scalars."""


def program(source: onnx.ModelProto) -> argosy.Program:
    if not any(entry.domain == "ai.onnx.ml" for entry in source.opset_import):
        source.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return argosy.load_onnx(source)


@pytest.mark.parametrize("case", CASES)
def test_the_range_of_an_input_is_that_of_what_reads_it(case: str) -> None:
    source, expected = CASES[case]
    loaded = program(source)
    needs = find_ranges(loaded.main, {"N": 6})
    found: dict[str, Any] = {}
    for name, need in needs.items():
        kind: Any = loaded.inputs[name]
        found[name] = list(need.values) if need.values is not None else need.bounds(kind.dtype)
    assert found == expected


@pytest.mark.parametrize("case", CASES)
def test_generated_inputs_are_taken(case: str) -> None:
    """By our evaluation, which refuses what is out of range, and by ONNX's own."""
    source, _ = CASES[case]
    loaded: Any = program(source)
    session = argosy.Session(argosy.compile(loaded, targets=["ref"]))
    theirs: Any = None if "Bernoulli" in str(source.graph.node) else ReferenceEvaluator(source)
    for seed in range(8):
        made = make_inputs(loaded.inputs, InputRequest(seed=seed), Dimensions.of({"N": 6}), program=lambda: loaded)
        found = session.run(made.values)["y"]
        assert found.dtype.kind != "f" or np.isfinite(found).all()
        if theirs is not None and case not in THEIR_FAULTS:
            np.testing.assert_allclose(theirs.run(None, made.values)[0], found, rtol=1e-4, atol=1e-5)


def test_ids_cover_the_vocabulary_and_say_why() -> None:
    loaded = program(CASES["gather"][0])
    made = make_inputs(loaded.inputs, InputRequest(), Dimensions.of({"N": 400}), program=lambda: loaded)
    assert set(made.values["i"].tolist()) == set(range(20))
    assert made.origins["i"] == "generated, seed 0, 0..19: indices of gather 'gather'"


def test_what_is_asked_for_goes_before_what_is_found() -> None:
    loaded = program(CASES["gather"][0])
    asked = InputRequest(ranges=(("i", 3, 4),))
    made = make_inputs(loaded.inputs, asked, Dimensions.of({"N": 100}), program=lambda: loaded)
    assert set(made.values["i"].tolist()) == {3, 4}
    assert made.origins["i"] == "generated, seed 0, 3..4: as asked"
    filled = make_inputs(loaded.inputs, InputRequest(fills=(("i", 1),)), program=lambda: loaded)
    assert set(filled.values["i"].tolist()) == {1}
    given = make_inputs(loaded.inputs, InputRequest(), given={"i": np.array([7])}, program=lambda: loaded)
    assert given.values["i"].tolist() == [7]
    assert given.origins["i"] == "given"


def test_a_number_that_decides_a_branch_is_what_it_is_compared_with() -> None:
    """As models do that take a sample rate."""
    info = helper.make_tensor_value_info("z", FLOAT, [1])
    parts = [helper.make_graph([node(op, "x", to="z")], op, [], [info]) for op in ("Neg", "Abs")]
    nodes = [
        node("Equal", "rate", "wanted", to="c"),
        helper.make_node("If", ["c"], ["y"], then_branch=parts[0], else_branch=parts[1]),
    ]
    source = model(nodes, {"x": (FLOAT, [1]), "rate": (INT64, [])}, {"wanted": np.int64(16000)})
    needs = find_ranges(program(source).main, {})
    assert (needs["rate"].low, needs["rate"].high, needs["rate"].strong) == (16000, 16000, False)


INT = dtype("int64")
FORMULAS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda x, c: x + c,
    "sub": lambda x, c: x - c,
    "from": lambda x, c: c - x,
    "mul": lambda x, c: x * c,
    "neg": lambda x, c: -(x + c),
    "twice": lambda x, c: (x * 3 + c) * 2 - 5,
    "half": lambda x, c: (x + c) / 2,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_number_in_the_range_of_an_operand_gives_one_that_is_needed(formula: str) -> None:
    """By trying all small integers, and none is left out at the ends for constants of one value."""
    traced = Formula.trace(FORMULAS[formula], 2)

    def value(x: int, c: int) -> int:
        from argosy.ops.pointwise import evaluate_formula  # noqa: PLC0415

        return int(evaluate_formula(traced, [np.array(x), np.array(c)]))

    for (low, high), (small, large) in itertools.product([(0, 30), (-20, 20), (3, 4)], [(1, 1), (2, 2), (1, 3)]):
        need = needs_of_operands(traced, Need(low, high, ""), [None, (small, large)], [INT, INT], "")[0]
        assert need is not None
        bounds = need.bounds(INT)
        good = [x for x in range(-60, 61) if all(low <= value(x, c) <= high for c in range(small, large + 1))]
        if bounds is None:
            assert not good
            continue
        inside = range(int(bounds[0]), int(bounds[1]) + 1)
        assert set(inside) <= set(good)
        if small == large and formula != "half":
            assert list(inside) == good


def test_needs_that_contradict_each_other_leave_one() -> None:
    front, back = Need(0, 9, "front"), Need(-10, -1, "back")
    assert meet(front, back) is meet(back, front) is front
    assert meet(Need(5, None, "a"), Need(None, 8, "b")) == Need(5, 8, "a, b")
    wish = Need(16000, 16000, "wish", strong=False)
    assert meet(wish, front) is front
    assert Need(0, 1 << 40, "").bounds(dtype("uint8")) == (0, 255)
    assert Need(300, 400, "").bounds(dtype("uint8")) is None

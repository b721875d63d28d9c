"""Programs whose ranks depend on what a run is fed with, before and after the pass, against `onnx.reference`.

They are drawn at random: conditionals that put an axis in, take one out, or look at the rank, between ops that take
any rank. Some runs of some programs are impossible; these must fail before and after.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.errors import ArgosyError, ModelError
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager

CONDITIONS = 3
SEEDS = 60
SIZES = (1, 2)


def branch(name: str, op: str, *operands: str) -> onnx.GraphProto:
    """A subgraph of one node."""
    output = helper.make_tensor_value_info(f"{name}_given", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node(op, operands, [f"{name}_given"])], name, [], [output])


class Program:
    """A model in the making; `at` is the value at hand, of any rank."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.at = "x"

    def node(self, op: str, *operands: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def conditional(self, condition: str, then: tuple[str, ...], otherwise: tuple[str, ...]) -> str:
        number = len(self.nodes)
        branches = (branch(f"then{number}", *then), branch(f"else{number}", *otherwise))
        return self.node("If", condition, then_branch=branches[0], else_branch=branches[1])

    def step(self) -> None:
        condition = f"c{self.random.randrange(CONDITIONS)}"
        same = ("Identity", self.at)
        match self.random.randrange(8):
            case 0:
                self.at = self.conditional(condition, ("Unsqueeze", self.at, "first"), same)
            case 1:
                self.at = self.conditional(condition, same, ("Squeeze", self.at, "first"))
            case 2:
                rank = self.node("Size", self.node("Shape", self.at))
                is_matrix = self.node("Equal", rank, "two")
                self.at = self.conditional(is_matrix, ("Unsqueeze", self.at, "first"), ("Neg", self.at))
            case 3:
                self.at = self.node("Add", self.at, "row")
            case 4:
                self.at = self.node("ReduceSum", self.at, "last", keepdims=1)
            case 5:
                self.at = self.node("Squeeze", self.at)
            case 6:
                self.at = self.node("MatMul", self.at, "square")
            case 7:
                self.at = self.node("Concat", self.at, self.node("Neg", self.at), axis=-2)

    def model(self) -> onnx.ModelProto:
        total = self.node("ReduceSum", self.at, keepdims=0)
        values: dict[str, np.ndarray] = {
            "first": np.array([0], np.int64),
            "last": np.array([-1], np.int64),
            "two": np.array(2, np.int64),
            "row": np.arange(3, dtype=np.float32),
            "square": np.arange(9, dtype=np.float32).reshape(3, 3) / 8,
        }
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 3])]
        inputs += [helper.make_tensor_value_info(f"c{i}", TensorProto.BOOL, []) for i in range(CONDITIONS)]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (self.at, total)]
        initializers = [onnx.numpy_helper.from_array(value, name) for name, value in values.items()]
        graph = helper.make_graph(self.nodes, "ranks", inputs, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def program(seed: int) -> onnx.ModelProto:
    made = Program(seed)
    for _ in range(made.random.randrange(2, 7)):
        made.step()
    return made.model()


def feeds() -> Iterator[dict[str, np.ndarray]]:
    for size, *conditions in itertools.product(SIZES, *[(False, True)] * CONDITIONS):
        x = np.linspace(-2, 3, size * 3, dtype=np.float32).reshape(size, 1, 3)
        yield {"x": x} | {f"c{index}": np.array(value) for index, value in enumerate(conditions)}


def optimised(module: Module) -> Module:
    return PassManager((NORMALISE,)).run(module)


def unranked(module: Module) -> int:
    """How many instructions read a tensor of unknown rank, conditionals apart."""
    return sum(
        isinstance(operand.type, TensorType) and operand.type.dims is None
        for instruction in module.walk()
        for operand in instruction.operands
        if operand is not None and instruction.op.name != "if"
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs_mean_the_same(seed: int) -> None:
    model = program(seed)
    reference = ReferenceEvaluator(model)
    try:
        imported = argosy.load_onnx(model)
        plain, walk = Interpreter(imported.main), Interpreter(optimised(imported.main))
    except ModelError:  # it contradicts itself whatever it is fed with
        for feed in feeds():
            with pytest.raises(Exception):  # noqa: B017,PT011 - the reference raises what numpy does
                reference.run(None, feed)
        return
    for feed in feeds():
        arguments = [feed[name] for name in imported.inputs]
        try:
            expected = reference.run(None, feed)
            plain.run(arguments, Env())  # stricter than the reference, which multiplies a number by a matrix
        except Exception:  # noqa: BLE001 - the reference raises what numpy does
            with pytest.raises(ArgosyError):
                walk.run(arguments, Env())
            continue
        for result, wanted in zip(walk.run(arguments, Env()), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
            assert np.shape(result) == np.shape(wanted)


def test_most_random_programs_have_known_ranks_inside() -> None:
    """The pass would pass the test above by doing nothing."""
    before = after = 0
    for seed in range(SEEDS):
        try:
            imported = argosy.load_onnx(program(seed)).main
            after += unranked(optimised(imported))
            before += unranked(imported)
        except ModelError:
            continue
    assert before > 100
    assert after == 0


LOOP = """
<ir_version: 9, opset_import: ["": 18]>
ranks (float[N, 3] x, int64 trips, bool c) => (float[A, B] y, float[C, D, E] ys) {
  one = Constant <value_ints = [1]> ()
  zero = Constant <value_ints = [0]> ()
  always = Constant <value = bool {1}> ()
  w = If (c) <
    then_branch = t () => (float[?] tt) { tt = ReduceSum <keepdims = 0> (x, zero) },
    else_branch = e () => (float[?, ?] ee) { ee = Identity (x) }
  >
  y, ys = Loop (trips, always, x) <
    body = b (int64 i, bool ci, float[?, ?] s) => (bool co, float[?, ?] so, float[?, ?] oo) {
    co = Identity (ci)
    d = If (c) <
      then_branch = t1 () => (tt1) { tt1 = Unsqueeze (s, zero) },
      else_branch = e1 () => (ee1) { ee1 = Identity (s) }
    >
    q = ReduceMax <keepdims = 1> (d, one)
    r = If (c) <
      then_branch = t2 () => (tt2) { tt2 = Squeeze (q, zero) },
      else_branch = e2 () => (ee2) { ee2 = Identity (q) }
    >
    so = Add (s, w)
    oo = Sub (s, r)
  }>
}
"""


def test_a_loop_with_ranks_of_the_run_is_native_code() -> None:
    """What is carried, captured and collected. `onnx.reference` stacks what is collected wrongly."""
    model = onnx.parser.parse_model(LOOP)
    assert unranked(argosy.load_onnx(model).main) > 0
    session = argosy.Session(argosy.compile(model, targets=["cpu"], strict=True))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    runtime = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for size, trips, condition in itertools.product((1, 4), (1, 3), (False, True)):
        x = np.linspace(-2, 3, size * 3, dtype=np.float32).reshape(size, 3)
        feed = {"x": x, "trips": np.array(trips), "c": np.array(condition)}
        for result, wanted in zip(session.run(feed).values(), runtime.run(None, feed), strict=True):
            assert np.shape(result) == np.shape(wanted)
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [12, 34])
def test_random_programs_are_native_code(seed: int) -> None:
    """Without host steps; what cannot run is refused by kernels."""
    model = program(seed)
    reference = ReferenceEvaluator(model)
    session = argosy.Session(argosy.compile(model, targets=["cpu"], strict=True))
    for feed in feeds():
        try:
            expected = reference.run(None, feed)
        except Exception:  # noqa: BLE001 - the reference raises what numpy does
            with pytest.raises(ArgosyError):
                session.run(feed)
            continue
        for result, wanted in zip(session.run(feed).values(), expected, strict=True):
            assert np.shape(result) == np.shape(wanted)
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)

"""Kernels mean what the interpreter means, for the ops that are not fused: the samples are those of native code.

Triton interprets the kernels; ops that kernels can't hold (complex elements) are left out.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from argosy.errors import ArgosyError
from argosy.ir import Builder, Env, Module, Program, TensorType
from argosy.ir.dtype import DTYPES, FLOAT32
from argosy.ir.interpreter import Interpreter
from argosy.ops.random import Random
from argosy.ops.recurrent import GATES, Recurrent
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.scan import Cumulative
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.view import Reshape, Transpose
from argosy.options import CompileOptions
from tests.properties.sample import Draw
from tests.targets.cpu.against_ref import agree
from tests.targets.cpu.test_ops import GENERATORS, build

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

STRICT = CompileOptions(strict=True)
OPS = (
    "bit_cast", "col2im", "count_ngrams", "cumulative", "deform_conv", "determinant", "dft", "einsum", "grid_sample",
    "max_roi_pool", "mel_weights", "pool", "resize", "rnn", "roi_align", "scatter_elements", "scatter_nd",
    "tree_ensemble",
)  # fmt: skip
SAMPLES = 3


def run(name: str, number: int) -> bool:
    """Check sample `number` of an op; False where kernels can't hold its values."""
    sample = GENERATORS[name](Draw(random.Random(number)))
    made = build(sample)
    if made is None:
        return False
    builder, results, given = made
    main = builder.module([(f"y{index}", value) for index, value in enumerate(results)])
    values = (*main.results, *(parameter.result() for parameter in main.parameters))
    if any(value.dtype.kind == "complex" for value in values):
        return False
    for binding in sample.bindings:
        sizes = [np.zeros(size, np.bool_) for _, size in sorted(binding.items())]
        check(main, [*sizes, *(operand.array(binding) for operand in given)], f"{name}, number {number}: {sample.op}")
    return True


def check(main: Module, arguments: list[np.ndarray], note: str, symbols: dict[str, int] | None = None) -> None:
    """Kernels and the interpreter give the same results, or both refuse."""
    device = interpreted_run(Program(main), options=STRICT)
    feeds = dict(zip(main.parameter_names, arguments, strict=True))
    try:
        expected = Interpreter(main).run(list(arguments), Env(dict(symbols or {})))
    except ArgosyError:
        with pytest.raises(ArgosyError):
            device(feeds)
        return
    found = device(feeds)
    for name, value in zip(main.result_names, expected, strict=True):
        agree(found[name], np.asarray(value), f"{note}, result {name}")


@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_interpreter(name: str) -> None:
    slow = name == "cumulative"  # Triton interprets a scan element by element
    held = [run(name, number) for number in range(1 if slow else SAMPLES)]
    assert any(held)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OPS)
def test_kernels_agree_with_the_interpreter_more_often(name: str) -> None:
    for number in range(60):
        run(name, number)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float64"])
def test_random_numbers_are_the_same_bits(dtype: str) -> None:
    builder, kind = Builder(), DTYPES[dtype]
    x = builder.parameter("x", TensorType(FLOAT32, (300, 3)))
    results = {
        "uniform": builder.add(Random("uniform", kind, -1.0, 2.0, 7, 1, None), x),
        "normal": builder.add(Random("normal", kind, 0.5, 3.0, 7, 2, None), x),
        "wide": builder.add(Random("normal", kind, 0.0, 1.0, 2**31, 3, (2, 3)), None),
    }
    main = builder.module(results)
    arguments = [np.zeros((300, 3), np.float32)]
    found = interpreted_run(Program(main), options=STRICT)({"x": arguments[0]})
    for name, value in zip(main.result_names, Interpreter(main).run(arguments, Env()), strict=True):
        np.testing.assert_array_equal(found[name].view(np.uint8), np.asarray(value).view(np.uint8))


def test_of_many_updates_for_one_element_the_last_counts() -> None:
    indices = np.random.default_rng(0).integers(-5, 5, (200, 3))
    updates = np.arange(600, dtype=np.float32).reshape(200, 3)
    x = np.full((5, 3), -1, np.float32)
    builder = Builder()
    named = [
        builder.parameter(name, TensorType(DTYPES[str(value.dtype)], value.shape))
        for name, value in (("x", x), ("i", indices), ("u", updates), ("rows", indices[:, :1]))
    ]
    main = builder.module(
        {
            "elements": builder.add(ScatterElements(0), *named[:3]),
            "rows_": builder.add(ScatterND(), named[0], named[3], named[2]),
        }
    )
    found = interpreted_run(Program(main), options=STRICT)({"x": x, "i": indices, "u": updates, "rows": indices[:, :1]})
    elements, rows = x.copy(), x.copy()
    for number in range(200):
        elements[indices[number], range(3)] = updates[number]
        rows[indices[number, 0]] = updates[number]
    np.testing.assert_array_equal(found["elements"], elements)
    np.testing.assert_array_equal(found["rows_"], rows)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_running_sum_of_several_tiles(axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 1100) if axis else (1100, 2))
    builder = Builder()
    source = builder.parameter("x", TensorType(DTYPES["int64"], x.shape))
    given = builder.constant(np.array(axis))
    kinds = [(True, False), (False, True)]
    main = builder.module(
        [(f"y{n}", builder.add(Cumulative("sum", *kind), source, given)) for n, kind in enumerate(kinds)]
    )
    found = interpreted_run(Program(main), options=STRICT)({"x": x})
    run = np.cumsum(x, axis)
    back = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    for number, expected in enumerate((run - x, back)):
        np.testing.assert_array_equal(found[f"y{number}"], expected)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_layers_of_several_tiles(kind: str, late: bool) -> None:
    steps, batch, inputs, hidden, gates = 2, 5, 5, 20, GATES[kind]
    names = {"rnn": ("softsign",), "gru": ("hardsigmoid", "tanh"), "lstm": ("sigmoid", "softplus", "elu")}[kind]
    rng = np.random.default_rng(0)
    shapes = ((steps, batch, inputs), (2, gates * hidden, inputs), (2, gates * hidden, hidden), (2, 2 * gates * hidden))
    arguments = [rng.normal(size=shape).astype(np.float32) / 8 for shape in shapes]
    builder = Builder()
    operands = [builder.parameter(f"x{n}", TensorType(FLOAT32, value.shape)) for n, value in enumerate(arguments)]
    op = Recurrent(
        kind, "bidirectional", names * 2, (0.2,) * (2 * len(names)), (0.5,) * (2 * len(names)), 0.4,
        input_forget=late, linear_before_reset=late,
    )  # fmt: skip
    lengths = builder.constant(np.arange(batch, dtype=np.int32) % (steps + 1))
    results = builder.add_all(op, *operands, lengths)
    check(builder.module([(f"y{n}", value) for n, value in enumerate(results)]), arguments, kind)


@pytest.mark.parametrize("softmax", [False, True])
def test_rows_whose_result_goes_on_under_another_shape(softmax: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    scale = np.arange(6, dtype=np.float32)
    builder = Builder()
    value, factor = (builder.parameter(n, TensorType(FLOAT32, v.shape)) for n, v in (("x", x), ("scale", scale)))
    centred = builder.pointwise("sub", value, builder.add(Reduce("mean", (2,), keep_dims=True), value))
    square = builder.add(Reduce("mean", (2,), keep_dims=True), builder.pointwise("mul", centred, centred))
    normed = builder.add(Softmax(2), centred) if softmax else builder.pointwise("mul", centred, square)
    moved = builder.add(Transpose((1, 0)), builder.add(Reshape((6, 8)), normed))
    found = interpreted_run(Program(builder.module({"y": builder.pointwise("mul", moved, factor)})), options=STRICT)(
        {"x": x, "scale": scale}
    )["y"]
    expected = x - x.mean(2, keepdims=True)
    power = np.exp(expected)
    expected = power / power.sum(2, keepdims=True) if softmax else expected * (expected**2).mean(2, keepdims=True)
    np.testing.assert_allclose(found, expected.reshape(6, 8).T * scale, 1e-5, 1e-5)

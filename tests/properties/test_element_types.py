"""Every element type that ONNX allows an op to have: it is imported, runs, gives the types that the schema says.

The numbers are those of `onnx.reference` in a wider type, rounded or wrapped; casts follow the rules of each type.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.dtype import Array
from argosy.ir.interpreter import Interpreter
from tests.frontends.onnx.one_node import run
from tests.properties.element_types.kinds import Kind, as_element
from tests.properties.element_types.samples import BODIES, NEWEST, samples, schemas
from tests.properties.element_types.sweep import judge, variants

EDGES = np.array(
    [0, -0.0, 1, -1, 0.25, 0.5, 1.5, 2.5, -2.5, 3.3, 5.9, 17, 100, -100, 240, 248, 300, 448, 464, 480, 57344, 6e4,
     1e5, 1e-3, 2e-3, 1e-6, -1e-9, 1e30, np.nan, np.inf, -np.inf]
)  # fmt: skip


def sweep(*, every: bool) -> Counter[str]:
    """Verdicts on all variants, after none has failed."""
    verdicts: Counter[str] = Counter()
    failures = []
    for variant in variants(every=every):
        verdict = judge(variant)
        verdicts[verdict.kind] += 1
        if verdict.kind == "fails":
            failures.append(f"{variant}: {verdict.why}")
    assert not failures, "\n".join(failures[:20])
    return verdicts


def test_every_type_of_a_few_samples() -> None:
    assert samples().keys() | BODIES == schemas().keys()
    verdicts = sweep(every=False)
    assert verdicts["agrees"] > 3000
    assert verdicts["refused"] < 120


@pytest.mark.nightly
def test_every_type_of_every_sample() -> None:
    verdicts = sweep(every=True)
    assert verdicts["agrees"] > 10_000
    assert verdicts["refused"] < 600


def allowed(op: str, variable: str) -> tuple[str, ...]:
    """The tensor types that a type variable of an op may be, by the names of their elements."""
    constraint = next(entry for entry in schemas()[op].type_constraints if entry.type_param_str == variable)
    kinds = [Kind.of(text) for text in constraint.allowed_type_strs]
    return tuple(kind.name for kind in kinds if not kind.containers)


@pytest.mark.parametrize("source", allowed("Cast", "T1"))
def test_casts_between_all_types(source: str) -> None:
    """What ONNX leaves to the processor (what does not fit an integer) is not compared, nor are numbers as texts."""
    kind = Kind((), source)
    numbers = np.array([1.0, -2.0, 0.5, 3.0]) if source == "string" else EDGES
    x = as_element(numbers, kind.dtype)
    for name in allowed("Cast", "T2"):
        target = Kind((), name)
        if source == "string" and (target.dtype.bits < 8 or target.dtype.kind in ("uint", "bool")):
            continue
        found = run("Cast", x, to=target.number)
        if "string" in (source, name):
            if kind.dtype.is_float and kind.dtype.bits >= 32 and name == "string":
                np.testing.assert_array_equal(found.astype(kind.dtype.numpy), x)
            continue
        node = helper.make_node("Cast", ["x"], ["y"], to=target.number)
        # The same numbers in float32 where numpy casts too few of the short types to each other.
        given, wide = (x, kind) if kind.dtype.bits >= 16 else (x.astype(np.float32), Kind((), "float"))
        (expected,) = evaluate(model([node], {"x": (wide, given)}, ["y"]), {"x": given})
        compared = fits(x, target)
        assert found.dtype == target.dtype.numpy
        assert compared.any()
        left, right = (np.asarray(part)[compared].astype(np.float64) for part in (found, expected))
        np.testing.assert_array_equal(left, right, f"{source} to {name}: {x[compared]}")


def fits(x: Array, target: Kind) -> Array:
    """Where a number has one meaning in the target."""
    if target.name == "float8e8m0":
        wide = x.astype(np.float64)
        return ~np.signbit(wide) & ~np.isinf(wide)  # it has no sign; infinity has a test of its own
    if not target.dtype.is_integer:
        return np.ones(x.shape, np.bool_)
    wide = x.astype(np.float64)
    least = -(2.0 ** (target.dtype.bits - 1)) if target.dtype.kind == "int" else 0.0
    with np.errstate(invalid="ignore"):
        return np.isfinite(wide) & (np.trunc(wide) >= least) & (np.trunc(wide) < least + 2.0**target.dtype.bits)


@pytest.mark.parametrize("source", allowed("QuantizeLinear", "T1"))
def test_quantisation_of_all_types(source: str) -> None:
    # The great ones and their halves are numbers of bfloat16: the division has the precision of the scale.
    numbers = np.array([0, 0.3, -0.3, 1, 1.5, 2.5, -2.5, 3.7, 7, -9, 20, 100, -200, 300, 1000, -61440])
    kinds = itertools.product(allowed("QuantizeLinear", "T2"), allowed("QuantizeLinear", "T3"))
    for scale, target in kinds:
        x_kind, scale_kind, kind = (Kind((), name) for name in (source, scale, target))
        given = {
            "x": (x_kind, as_element(numbers, x_kind.dtype)),
            "scale": (scale_kind, as_element(np.array(2.0), scale_kind.dtype)),
            "zero": (kind, as_element(np.array(0 if kind.dtype.is_float else 1), kind.dtype)),
        }
        feeds = {name: value for name, (_, value) in given.items()}
        made = model([helper.make_node("QuantizeLinear", list(given), ["y"])], given, ["y"])
        (found,), (expected,) = ours(made, feeds), evaluate(made, feeds)
        assert found.dtype == kind.dtype.numpy
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64), f"{scale}, {target}")


@pytest.mark.parametrize("source", allowed("DequantizeLinear", "T1"))
def test_dequantisation_to_all_types(source: str) -> None:
    kind = Kind((), source)
    x = as_element(np.array([0, 0.5, -0.5, 1, 3, -3, 7, -8, 20, 127, -128, 300, -7e4]), kind.dtype)
    kinds = itertools.product(allowed("DequantizeLinear", "T2"), allowed("DequantizeLinear", "T3"))
    for scale, target in kinds:
        factor, result = as_element(np.array(0.5), Kind((), scale).dtype), Kind((), target)
        found = run("DequantizeLinear", x, factor, output_dtype=result.number)
        exact = as_element(x.astype(np.float64) * 0.5, result.dtype)
        np.testing.assert_array_equal(found.astype(np.float64), exact.astype(np.float64), f"{scale}, {target}")


def test_bit_casts_between_all_types_of_one_width() -> None:
    names = allowed("BitCast", "T1")
    for source, target in itertools.product(names, names):
        left, right = Kind((), source), Kind((), target)
        x = as_element(np.array([1.0, 0.0, 1.0, 0.5]), left.dtype)
        if left.dtype.bits != right.dtype.bits:
            with pytest.raises(ModelError, match="the widths differ"):
                run("BitCast", x, to=right.number)
            continue
        found = run("BitCast", x, to=right.number)
        assert found.dtype == right.dtype.numpy
        if target != "bool" and left.dtype.bits >= 8:
            assert found.tobytes() == x.tobytes()


def model(nodes: list[NodeProto], inputs: dict[str, tuple[Kind, Any]], outputs: list[str]) -> ModelProto:
    """A model of the newest opset; outputs without types."""
    given = [helper.make_value_info(name, kind.proto(value)) for name, (kind, value) in inputs.items()]
    graph = helper.make_graph(nodes, "main", given, [onnx.ValueInfoProto(name=name) for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)])


def evaluate(made: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """What onnx.reference makes of a model."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(made).run(None, feeds))


def ours(made: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """What we make of it."""
    return list(Interpreter(load(made).main).run(list(feeds.values()), Env()))


def graph(name: str, kind: Kind, nodes: list[NodeProto], inputs: list[Any], outputs: list[Any]) -> GraphProto:
    """A body; its inputs and outputs that are names have the type `kind`, the others are given whole."""
    given, results = (
        [helper.make_value_info(entry, kind.proto(None)) if isinstance(entry, str) else entry for entry in entries]
        for entries in (inputs, outputs)
    )
    return helper.make_graph(nodes, name, given, results)


def scalar(name: str, element: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, [])


def conditional(kind: Kind) -> list[NodeProto]:
    copy = [helper.make_node("Identity", ["x"], ["b"])]
    made = graph("branch", kind, copy, [], ["b"])
    return [helper.make_node("If", ["go"], ["y"], then_branch=made, else_branch=made)]


def loop(kind: Kind) -> list[NodeProto]:
    copies = [helper.make_node("Identity", [a], [b]) for a, b in (("c", "d"), ("v", "w"), ("v", "s"))]
    number, go, again = (scalar("i", onnx.TensorProto.INT64), *(scalar(n, onnx.TensorProto.BOOL) for n in "cd"))
    body = graph("body", kind, copies, [number, go, "v"], [again, "w", "s"])
    last = helper.make_node("Gather", ["all", "zero"], ["y"])
    return [helper.make_node("Loop", ["three", "go", "x"], ["last", "all"], body=body), last]


def scan(kind: Kind) -> list[NodeProto]:
    body = graph("body", kind, [helper.make_node("Identity", ["v"], ["w"])], ["v"], ["w"])
    return [helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]


def mapped(kind: Kind) -> list[NodeProto]:
    body = graph("body", kind, [helper.make_node("Identity", ["v"], ["w"])], ["v"], ["w"])
    return [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceMap", ["s"], ["t"], body=body),
        helper.make_node("SequenceAt", ["t", "zero"], ["y"]),
    ]


def sequences(kind: Kind) -> list[NodeProto]:
    return [
        helper.make_node("SequenceEmpty", [], ["a"], dtype=kind.number),
        helper.make_node("SequenceInsert", ["a", "x"], ["b"]),
        helper.make_node("SequenceInsert", ["b", "x", "zero"], ["c"]),
        helper.make_node("SequenceErase", ["c"], ["d"]),
        helper.make_node("Optional", ["d"], ["e"]),
        helper.make_node("OptionalGetElement", ["e"], ["f"]),
        helper.make_node("ConcatFromSequence", ["f"], ["y"], axis=0),
    ]


def moved() -> Iterator[tuple[Callable[[Kind], list[NodeProto]], str]]:
    """Graphs that give their input, with the element types that their ops allow."""
    for build, op, variable in ((conditional, "If", "V"), (loop, "Loop", "V"), (scan, "Scan", "V")):
        for name in allowed(op, variable):
            yield build, name
    for constraint in schemas()["SequenceMap"].type_constraints:
        if constraint.type_param_str == "S":
            for text in constraint.allowed_type_strs:
                yield mapped, Kind.of(text).name
                yield sequences, Kind.of(text).name


@pytest.mark.parametrize(("build", "name"), list(moved()))
def test_bodies_and_sequences_hand_on_every_type(build: Callable[[Kind], list[NodeProto]], name: str) -> None:
    kind = Kind((), name)
    x = as_element(np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.5]]), kind.dtype)
    feeds = {"x": x, "go": np.array(True), "three": np.array(3), "zero": np.array(0)}
    inputs = {key: (kind if key == "x" else Kind.of_value(value), value) for key, value in feeds.items()}
    (found,) = ours(model(build(kind), inputs, ["y"]), feeds)
    assert found.dtype == kind.dtype.numpy
    assert found.tolist() == x.tolist() if kind.dtype.kind == "string" else found.tobytes() == x.tobytes()


@pytest.mark.parametrize("op", ["Resize", "GridSample"])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_interpolation_of_complex_numbers_is_that_of_their_parts(op: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 1, 4, 5)) + 1j * rng.normal(size=(1, 1, 4, 5))
    grid = rng.uniform(-1.2, 1.2, (1, 3, 3, 2))
    rest: tuple[Any, ...] = (grid,) if op == "GridSample" else (None, None, np.array([1, 1, 7, 3]))
    parts = []
    for part in (x.real, x.imag):
        node = helper.make_node(
            op, ["x", *("" if one is None else f"r{i}" for i, one in enumerate(rest))], ["y"], mode=mode
        )
        feeds = {"x": part, **{f"r{i}": one for i, one in enumerate(rest) if one is not None}}
        inputs = {name: (Kind.of_value(value), value) for name, value in feeds.items()}
        parts.append(evaluate(model([node], inputs, ["y"]), feeds)[0])
    found = run(op, x, *rest, mode=mode)
    short = run(op, x.astype(np.complex64), *rest, mode=mode)
    assert (found.dtype, short.dtype) == (np.complex128, np.complex64)
    for have in (found, short):
        np.testing.assert_allclose(have.real, parts[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(have.imag, parts[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "types", list(itertools.permutations([np.float32, np.float16, ml_dtypes.bfloat16, np.float64], 2))
)
def test_attention_of_two_types(types: tuple[Any, Any]) -> None:
    """Queries and keys of one type, values of another: the body that ONNX gives holds for one type only."""
    first, second = types
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(1, 2, 3, 4)) for _ in range(3))
    past = [rng.normal(size=(1, 2, 2, 4)) for _ in range(2)]
    given = [q.astype(first), k.astype(first), v.astype(second), None, past[0].astype(first), past[1].astype(second)]
    outputs = ("y", "key", "value")
    y, key, value = run("Attention", *given, outputs=outputs)
    assert [part.dtype for part in (y, key, value)] == [np.dtype(kind) for kind in (first, first, second)]
    wide = [None if one is None else one.astype(np.float64) for one in given]
    scores = wide[0] @ np.concatenate([wide[4], wide[1]], 2).swapaxes(2, 3) / 2
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    step = max(map(eps_of, types))
    np.testing.assert_allclose(y.astype(np.float64), shares @ np.concatenate([wide[5], wide[2]], 2), atol=2 * step)
    np.testing.assert_array_equal(value, np.concatenate([given[5], given[2]], 2))


def eps_of(kind: Any) -> float:
    """The step of a float type at 1."""
    return float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]


def test_product_of_quantised_eight_bit_floats() -> None:
    rng = np.random.default_rng(2)
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        a, b = rng.normal(size=(2, 4)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)
        scale, zero = np.float32(0.5), np.zeros((), dtype)
        y_scale = np.float32(0.25)
        y = run("QLinearMatMul", a, np.array(scale), zero, b, np.array(scale), zero, np.array(y_scale), zero)
        exact = a.astype(np.float64) @ b.astype(np.float64) * 0.25 / 0.25
        assert y.dtype == dtype
        np.testing.assert_allclose(y.astype(np.float64), exact, rtol=eps_of(dtype) / 2, atol=1e-3)


def test_gemm_of_integers_by_a_fraction() -> None:
    a, b, c = np.array([[3, -5]]), np.array([[1, 2], [7, 3]]), np.array([5, 6])
    for given in ([a, b, c], [a, b]):
        node = helper.make_node("Gemm", ["a", "b", "c"][: len(given)], ["y"], alpha=0.25, beta=0.5)
        feeds = dict(zip(("a", "b", "c"), given, strict=False))
        inputs = {name: (Kind.of_value(value), value) for name, value in feeds.items()}
        made = model([node], inputs, ["y"])
        np.testing.assert_array_equal(ours(made, feeds)[0], evaluate(made, feeds)[0])

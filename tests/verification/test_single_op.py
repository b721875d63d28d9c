"""What rounding explains is allowed of a single instruction, and a fault is not: against float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import argosy
from argosy.comparison import compare
from argosy.errors import ArgosyError
from argosy.inputs import generate
from argosy.ir.builder import Builder
from argosy.ir.dtype import DTYPES, FLOAT32, INT32, dtype, dtype_of
from argosy.ir.interpreter import Interpreter, evaluate
from argosy.ir.module import Constant, Instruction
from argosy.ir.op import Env
from argosy.ir.types import TensorType
from argosy.ops.control import If
from argosy.ops.convolution import Conv
from argosy.ops.einsum import Einsum
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Quantize
from argosy.ops.reduce import Reduce
from argosy.verification.single_op import Rounding, terms_of, tolerance_of
from argosy.verification.widened import WideReference, rounded, widened
from benchmarks.accuracy.cases import CASES, Case
from benchmarks.accuracy.measured import sizes_of
from tests.models import real_models

SOURCE = np.random.default_rng(2)


def data(*shape: int, element: str = "float32") -> Any:
    return SOURCE.normal(size=shape).astype(dtype(element).numpy)


def made(op: Any, *operands: NDArray[Any]) -> Instruction:
    """An instruction over parameters of the types of the operands."""
    build = Builder()
    values = [
        build.parameter(f"x{index}", TensorType(dtype_of(operand.dtype), operand.shape))
        for index, operand in enumerate(operands)
    ]
    added = build.pointwise(op, *values) if callable(op) else build.add(op, *values)
    return added.instruction


def allowed(rule: Rounding, truth: Any, found: Any) -> bool:
    """Whether `found` is what rounding makes of the float64 array `truth`."""
    kind = dtype_of(found.dtype)
    expected = rounded({"y": truth}, {"y": TensorType(kind, truth.shape)})
    return not compare(expected, {"y": found}, rule, {"y": truth})


@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("depth", [3, 100, 4096])
def test_a_product_may_round_and_not_lose_a_term(element: str, depth: int) -> None:
    a, b = data(5, depth, element=element), data(depth, 7, element=element)
    truth = a.astype(np.longdouble) @ b.astype(np.longdouble)
    instruction = made(Dot(), a, b)
    (found,) = evaluate(instruction, Env(), [a, b])
    assert terms_of(instruction, {}) == depth
    for operands in (None, [a, b]):
        assert allowed(tolerance_of(instruction, {}, operands=operands), truth.astype(np.float64), found)
    if element in ("float32", "float64"):
        short = (truth - np.outer(a[:, 1], b[1].astype(np.longdouble))).astype(a.dtype)
        assert not allowed(tolerance_of(instruction, {}, operands=[a, b]), truth.astype(np.float64), short)


def test_products_of_short_operands_have_the_error_of_these() -> None:
    a, b = data(20, 64), data(64, 20)
    truth = a.astype(np.float64) @ b.astype(np.float64)
    instruction = made(Dot(), a, b)
    for precision, bits in (("fp16", 11), ("tf32", 11), ("bf16", 8)):
        scale = 2.0 ** (bits - 1)
        cut = [np.ldexp(np.rint(np.frexp(x)[0] * 2 * scale) / 2 / scale, np.frexp(x)[1]) for x in (a, b)]
        found = (cut[0].astype(np.float64) @ cut[1].astype(np.float64)).astype(np.float32)
        for operands in (None, [a, b]):
            assert allowed(tolerance_of(instruction, {}, precision, operands), truth, found)
            assert not allowed(tolerance_of(instruction, {}, "fp32", operands), truth, found)


def test_products_in_a_branch_round_their_factors_one_after_another() -> None:
    """Means by a weight that bf16 rounds down by nearly all that it may: a dozen are further off than one may be."""
    short = DTYPES["bfloat16"].numpy
    mean = np.full((32, 32), (1 + 0.9 * 2.0**-8) / 32, np.float32)
    x = np.abs(data(20, 32))
    truth, found = x.astype(np.float64), x
    build = Builder("then")
    value = build.tensor_parameter("captured", FLOAT32, (20, 32))
    for _ in range(12):
        truth = truth @ mean.astype(np.float64)
        factors = [each.astype(short).astype(np.float64) for each in (found, mean)]
        found = (factors[0] @ factors[1]).astype(np.float32)
        value = build.add(Dot(), value, build.constant(mean))
    branch = build.module({"out": value})
    operands = [np.array(True), x, x]
    instruction = made(If(branch, branch), *operands)
    assert allowed(tolerance_of(instruction, {}, "bf16", operands), truth, found)
    assert not allowed(tolerance_of(instruction, {}, "fp32", operands), truth, found)
    assert not allowed(tolerance_of(made(Dot(), x, mean), {}, "bf16"), truth, found)


def test_factors_below_the_normal_numbers_of_fp16_are_rounded_coarsely() -> None:
    a, b = data(20, 1) * np.float32(1e-6), data(1, 20)
    found = a.astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype(np.float32)
    truth = a.astype(np.float64) @ b.astype(np.float64)
    instruction = made(Dot(), a, b)
    assert allowed(tolerance_of(instruction, {}, "fp16", [a, b]), truth, found)
    assert not allowed(tolerance_of(instruction, {}, "bf16", [a, b]), truth, found), "which has such numbers"


def test_operands_tell_what_cancels() -> None:
    """The sum of large terms that cancel is off by what they are rounded to: no share of the result explains that."""
    half = data(4, 500) * 1000
    a, b = np.concatenate([half, -half], 1), np.ones((1000, 1), np.float32) + np.float32(1e-7)
    truth = a.astype(np.float64) @ b.astype(np.float64)
    instruction = made(Dot(), a, b)
    (found,) = evaluate(instruction, Env(), [a, b])
    off = found + np.float32(1e-3)
    assert allowed(tolerance_of(instruction, {}, operands=[a, b]), truth, off)
    assert not allowed(tolerance_of(instruction, {}), truth, off)


def test_convolutions_sums_and_einsums() -> None:
    x, w = data(1, 8, 12, 12), data(4, 8, 3, 3)
    v = data(3, 1000)
    cases: Sequence[tuple[Any, list[Any], int]] = (
        (Conv((1, 1), (1, 1, 1, 1), (1, 1)), [x, w], 73),
        (Reduce("mean", (1,)), [v], 1001),
        (Reduce("sum", (0, 1)), [v], 3001),
        (Einsum("ij,kj->ik"), [v, data(2, 1000)], 1001),
    )
    for op, operands, terms in cases:
        instruction = made(op, *operands)
        (found,) = evaluate(instruction, Env(), operands)
        (truth,) = evaluate(instruction, Env(), [operand.astype(np.float64) for operand in operands])
        assert terms_of(instruction, {}) == terms
        rule = tolerance_of(instruction, {}, operands=operands)
        assert rule.magnitudes is not None
        assert allowed(rule, truth, found)
        (fewer,) = evaluate(instruction, Env(), [np.where(np.indices(o.shape).sum(0) == 3, 0, o) for o in operands])
        assert not allowed(rule, truth, fewer.astype(np.float32)), "without some of the terms"


FORMULAS: dict[str, Callable[..., Any]] = {
    "exp(50 x)": lambda x: (x * 50.0).apply("exp"),
    "x - x rounded": lambda x: x - x.convert(dtype("float8_e4m3fn")).convert(FLOAT32),
    "tanh": lambda x: (x * 3.0 + 0.5).apply("tanh"),
    "steps": lambda x: (x * 1.1 < 0.3).select(x, x * 2.0),
    "to integers": lambda x: (x * 7.3).apply("floor").convert(INT32),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_followed(formula: str) -> None:
    x = data(5000)
    build = Builder()
    value = build.pointwise(FORMULAS[formula], build.tensor_parameter("x", FLOAT32, x.shape))
    instruction = value.instruction
    (found,) = evaluate(instruction, Env(), [x])
    module = widened(build.module({"y": value}))
    (truth,) = Interpreter(module).run([x.astype(np.float64)], Env({}))
    rule = tolerance_of(instruction, {}, operands=[x])
    assert allowed(rule, truth, found)
    if found.dtype.kind == "f":
        assert not allowed(rule, truth, found * np.float32(1 + 2e-3)), "a fault"
    else:
        assert not allowed(rule, truth, found + 2)


def test_what_computes_nothing_is_exact() -> None:
    codes = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
    product = made(Dot(INT32), codes, codes)
    rule = tolerance_of(product, {}, operands=[codes, codes])
    assert rule.allowed_integer(codes, DTYPES["int32"]) == 0
    x = data(4, 4)
    quantised = made(Quantize(DTYPES["int8"]), x, np.ones((), np.float32))
    assert tolerance_of(quantised, {}).allowed_integer(codes, DTYPES["int8"]) == 1, "a quotient halfway between two"


@pytest.mark.models
@pytest.mark.parametrize(
    "model_id",
    [
        "magika-model",
        "silero-vad-silero-vad-16k-sequence",
        "speechmos-run-1668423760-stage-0",
        pytest.param("rapidocr-ch-ppocr-mobile-v2-0-cls-mobile", marks=pytest.mark.nightly),
        pytest.param("text2tashkeel-rawi-v2-int8", marks=pytest.mark.nightly),
    ],
)
def test_every_instruction_of_real_models_is_explained_by_rounding(model_id: str) -> None:
    """`ref` in the model's types against the same instruction in float64, on the same operands."""
    main = argosy.load_onnx(real_models.path(model_id)).main
    held: dict[Any, Any] = {}
    env, count = Env({}), 0
    for parameter, value in zip(main.parameters, real_models.feeds(model_id).values(), strict=True):
        held[parameter.result()] = value

    def check(instruction: Instruction, results: Sequence[Any]) -> None:
        nonlocal count
        held.update(zip(instruction.results, results, strict=True))
        if isinstance(instruction.op, Constant) or instruction.op.modules():
            return
        operands = [None if operand is None else held[operand] for operand in instruction.operands]
        truth = evaluated_wide(instruction, operands, env)
        names = [f"{instruction.op.name} {index}" for index in range(len(results))]
        expected = rounded(dict(zip(names, truth, strict=True)), dict(zip(names, instruction.types, strict=True)))
        exact = dict(zip(names, truth, strict=True))
        for given in (operands, None):
            rule = tolerance_of(instruction, env.symbols, operands=given)
            assert compare(expected, dict(zip(names, results, strict=True)), rule, exact) == (), str(rule)
        count += 1

    Interpreter(main).run(list(real_models.feeds(model_id).values()), env, check)
    assert count > 5


def evaluated_wide(instruction: Instruction, operands: Sequence[Any], env: Env) -> list[Any]:
    """The results of one instruction in float64."""
    build = Builder()
    values = [
        None if operand is None else build.parameter(f"p{index}", operand.type)
        for index, operand in enumerate(instruction.operands)
    ]
    build.keep(instruction, values)
    added = build._instructions[-1]
    module = widened(build.module([(f"r{index}", value) for index, value in enumerate(added.results)]))
    given = [
        operand.astype(np.float64) if isinstance(operand, np.ndarray) and operand.dtype.kind == "f" else operand
        for operand in operands
        if operand is not None
    ]
    return list(Interpreter(module).run(given, Env(dict(env.symbols))))


SHORT = ("matrix product, 512 terms", "convolution 3x3", "convolution 1x1", "softmax", "sum of 1000", "exp", "x ^ y")
"""Families of one instruction that every change is tested with; the others are nightly."""


def families() -> list[Any]:
    return [
        pytest.param(case, element, id=f"{case.family}-{element}", marks=[] if quick else [pytest.mark.nightly])
        for case in CASES
        for element in case.elements
        for quick in [case.family in SHORT and element in ("float32", "float16")]
        if len(case.nodes) == 1
    ]


@pytest.mark.parametrize(("case", "element"), families())
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_native_code_of_one_instruction_is_explained_by_rounding(case: Case, element: str, precision: str) -> None:
    try:
        program = argosy.load_onnx(case.model(element))
    except ArgosyError:
        pytest.skip(f"ONNX has no {case.family} in {element}")
    instructions = [each for each in program.main.instructions if not isinstance(each.op, Constant)]
    if len(instructions) != 1:
        pytest.skip(f"{case.family} is several instructions")
    inputs = {
        name: generate(name, kind, sizes_of(kind), bounds=case.ranges.get(name))
        for name, kind in program.inputs.items()
    }
    operands = [
        None if value is None else inputs[value.name] if value.constant is None else value.constant.array()
        for value in instructions[0].operands
    ]
    found = argosy.Session(argosy.compile(program, targets=["cpu"], precision=precision), device="cpu").run(inputs)
    exact = WideReference(program).answer(inputs, 0)
    for given in (operands, None):
        rule = tolerance_of(instructions[0], {}, precision, given)
        assert compare(rounded(exact, program.outputs), found, rule, exact) == (), str(rule)

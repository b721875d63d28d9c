"""Matrix products on the CPU agree with the interpreter: shapes, operands, element types, levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Env, Module, Program
from argosy.ir.dim import DimLike
from argosy.ir.dtype import dtype
from argosy.ir.interpreter import Interpreter
from argosy.ops.matmul import Dot
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import agree, check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

SHAPES = [
    ((37, 45), (45, 67)),
    ((128, 256), (256, 64)),
    ((1, 300), (300, 100)),
    ((3, 129), (129, 16)),
    ((50,), (50, 70)),
    ((50,), (3, 50, 70)),
    ((50,), (2, 3, 50, 33)),
    ((5, 50), (50,)),
    ((2, 3, 5, 50), (50,)),
    ((7, 1, 50), (50, 33)),
    ((2, 3, 33, 50), (2, 3, 50, 70)),
    ((2, 1, 33, 64), (3, 64, 64)),
    ((4, 20, 30), (30, 40)),
    ((0, 50), (50, 70)),
    ((5, 0), (0, 70)),
    ((1, 2, 3), (3, 1)),
]


@dataclass(slots=True)
class Problem:
    """A module with a product, its arguments, and what the symbols are."""

    left: Sequence[int]
    right: Sequence[int]
    kind: str = "float32"
    result: str | None = None
    weight: bool = True
    symbolic: bool = False
    turned: bool = False
    taken: bool = False
    scale: float = 1.0
    arguments: list[Any] = field(default_factory=list)

    def module(self) -> Module:
        """`left @ right`, the right operand a constant where it is a `weight`; with a bias and more where `taken`."""
        random = np.random.default_rng(7)
        build = Builder()

        def numbers(shape: Sequence[int], kind: str = self.kind) -> Any:
            values = random.standard_normal(shape) * self.scale
            kinds = dtype(kind)
            return (values if kinds.is_float else np.abs(values * 8)).astype(kinds.numpy)

        def given(name: str, value: Any, dims: Sequence[DimLike | str], kind: str = self.kind) -> Any:
            self.arguments.append(value)
            return build.tensor_parameter(name, kind, dims)

        dims = [f"d{axis}" for axis in range(len(self.left))] if self.symbolic else list(self.left)
        left = given("left", numbers(self.left), dims)
        stored = numbers([*self.right[:-2], self.right[-1], self.right[-2]] if self.turned else self.right)
        right = build.constant(stored) if self.weight else given("right", stored, list(stored.shape))
        if self.turned:
            rank = len(self.right)
            right = build.add(Transpose((*range(rank - 2), rank - 1, rank - 2)), right)
        product = build.add(Dot(dtype(self.result) if self.result else None), left, right)
        if self.taken:
            bias = build.constant(numbers(self.right[-1:], "float32"))
            shape = (*np.broadcast_shapes(self.left[:-2], self.right[:-2]), self.left[-2], self.right[-1])
            rest = given("rest", numbers(shape, "float32"), product.shape, "float32")
            product = build.pointwise(lambda p, b, r: ((p + b) * 0.5 + r).max(0.0), product, bias, rest)
        return build.module({"y": product})

    def check(self) -> None:
        """Native code and the interpreter agree."""
        module = self.module()
        symbols = {f"d{axis}": size for axis, size in enumerate(self.left)} if self.symbolic else {}
        check(module, [(self.arguments, symbols)], str(self))


def scale_of(shapes: tuple[Sequence[int], Sequence[int]]) -> float:
    """Of the numbers: sums of many are rounded by more than what is allowed, as each BLAS orders them."""
    return 0.5 if shapes[0][-1] > 200 else 1.0


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "value"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_shapes(shapes: tuple[Sequence[int], Sequence[int]], weight: bool, symbolic: bool) -> None:
    Problem(*shapes, weight=weight, symbolic=symbolic, scale=scale_of(shapes)).check()


@pytest.mark.parametrize("shapes", [shapes for shapes in SHAPES if len(shapes[0]) > 1 and len(shapes[1]) > 1], ids=str)
def test_turned_and_taken(shapes: tuple[Sequence[int], Sequence[int]]) -> None:
    Problem(*shapes, turned=True, taken=True, scale=scale_of(shapes)).check()
    Problem(*shapes, turned=True, weight=False, scale=scale_of(shapes)).check()


@pytest.mark.parametrize("shapes", [((1, 3001), (3001, 50)), ((2, 1100), (1100, 40)), ((1, 1040), (1040, 16))], ids=str)
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_few_rows_and_much_depth(shapes: tuple[Sequence[int], Sequence[int]], symbolic: bool) -> None:
    Problem(*shapes, symbolic=symbolic, taken=True, scale=0.1).check()
    Problem(*shapes, symbolic=symbolic, weight=False, scale=0.1).check()


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64", "int32", "int64", "uint32", "uint64", "int8"])
def test_element_types(kind: str) -> None:
    Problem((19, 45), (45, 37), kind).check()
    Problem((2, 19, 45), (2, 45, 37), kind, weight=False, symbolic=True).check()


@pytest.mark.parametrize(("kind", "result"), [("int8", "int32"), ("uint8", "int32"), ("float16", "float32")])
def test_wider_sums(kind: str, result: str) -> None:
    Problem((19, 45), (45, 37), kind, result).check()


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels(level: str) -> None:
    """Tiles of every width of registers that this CPU has give the same results."""
    problem = Problem((33, 50), (50, 70), taken=True)
    module = problem.module()
    try:
        session = argosy.Session(argosy.compile(Program(module), targets=(level,), strict=True), device="cpu")
    except argosy.errors.ArgosyError as refusal:
        pytest.skip(str(refusal))
    found = session.run(dict(zip(module.parameter_names, problem.arguments, strict=True)))
    (expected,) = Interpreter(module).run(problem.arguments, Env())
    agree(found["y"], np.asarray(expected), level)


def test_rows_at_a_multiple_of_a_page() -> None:
    """Rows 4 KiB apart are packed, for they would crowd one set of the first cache."""
    Problem((40, 1024), (1024, 48), scale=0.1).check()
    Problem((64, 64), (64, 48)).check()


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_sums_in_several_blocks(kind: str, symbolic: bool) -> None:
    """Tiles wait between the blocks of a deep sum; the last block is a shorter one, and rows fall into two strips."""
    Problem((300, 1050), (1050, 40), kind, symbolic=symbolic, scale=0.1).check()
    Problem((2, 30, 1050), (2, 1050, 40), kind, symbolic=symbolic, weight=False, scale=0.1).check()

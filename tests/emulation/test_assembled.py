"""The text that is emulated is that of the code object that ships: it assembles to the same instructions."""

from __future__ import annotations

import importlib.util

import pytest

import argosy
from argosy.artifact.artifact import Artifact
from argosy.emulation.archs import GENERATIONS
from argosy.targets.gpu.arches.amd import AMD
from argosy.toolchains.gpu_code_object import instruction_bytes
from argosy.toolchains.triton import assembled
from benchmarks.models import catalog

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton is not installed"
)

_FEATURES = {row.name: row.llvm_features for row in AMD}
_EVERY_CHANGE = (("bert_small", "gfx942"), ("lstm_small", "gfx1201"))
_MODELS = ("bert_small", "resnet_small", "mobilenet_small", "vit_small", "lstm_small")


def _pairs(model: str, arch: str) -> list[tuple[bytes, str]]:
    made = argosy.compile(catalog.make(model), targets=(arch,), precision="fp16", strict=True)
    artifact = Artifact.open(made.to_bytes())
    return [
        (artifact.entry(variant.key, record.path), artifact.entry(variant.key, record.assembly).decode())
        for variant in artifact.variants
        if variant.arch == arch
        for record in artifact.plan(variant.key).code
    ]


@pytest.mark.parametrize(
    ("model", "arch"),
    [
        pytest.param(model, arch, marks=[] if (model, arch) in _EVERY_CHANGE else [pytest.mark.nightly])
        for model in _MODELS
        for arch in GENERATIONS
    ],
)
def test_the_text_is_that_of_the_code(model: str, arch: str) -> None:
    pairs = _pairs(model, arch)
    assert pairs
    objects = assembled([(text, arch, _FEATURES[arch]) for _, text in pairs], jobs=1)
    for (code, text), again in zip(pairs, objects, strict=True):
        assert instruction_bytes(again) == instruction_bytes(code), text.splitlines()[:6]


def test_another_text_is_told_apart() -> None:
    code, text = _pairs("bert_small", "gfx942")[0]
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if "s_endpgm" in line)
    lines.insert(place, "\ts_nop 0")
    (again,) = assembled([("\n".join(lines), "gfx942", "")], jobs=1)
    assert instruction_bytes(again) != instruction_bytes(code)

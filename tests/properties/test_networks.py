"""Random networks of 5 to 40 ONNX nodes, with dynamic dims: `ref` gives what ONNX Runtime does, code what `ref` does.

`python -m tests.properties.networks` compares more of them, on any arch. What the standard leaves open is not drawn,
nor what ONNX Runtime is known to do otherwise; the templates say so where they avoid it.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from typing import Final

import pytest

from argosy.emulation.c_engine.build import engine_reason
from argosy.targets.cpu.target import CpuTarget
from tests.debugging.planting import plant, wrong_maximum
from tests.properties.networks import compared
from tests.properties.networks.compared import TEMPLATES, compare_network, draw_network
from tests.properties.networks.network import Network, Template

FAR: Final = (
    *("gfx942", "gfx1100:fp16", "gfx90a:bound", "gfx1201", "gfx942:bf16", "gfx1250", "gfx950:fp16:bound", "gfx1151"),
    *("gfx942:fp16", "gfx1100", "gfx1250:bf16", "gfx942:bound"),
)
"""Emulated archs, in several precisions; a network runs on one of them."""
reachable = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or bool(engine_reason()),
    reason=f"no triton (extra gpu), or no engine: {engine_reason()}",
)


def run(numbers: range, *places: str) -> None:
    """Compare each network in one of the places; fail at the first that differs."""
    verdicts: Counter[str] = Counter()
    for number in numbers:
        place = places[number % len(places)]
        verdict = compare_network(draw_network(number), place)
        assert verdict.kind in ("agrees", "amplified"), f"network {number} on {place}: {verdict.kind}: {verdict.why}"
        verdicts[verdict.kind] += 1
    assert verdicts["amplified"] <= 0.02 * len(numbers) + 1, "they say nothing"


def test_ref_agrees_with_onnx_runtime() -> None:
    run(range(40), "ref")


def test_code_agrees_with_ref() -> None:
    run(range(12), "cpu", "cpu:bound", "cpu:fp16")


@reachable
def test_emulated_code_agrees_with_ref() -> None:
    run(range(4), *FAR)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_ref_agrees_with_onnx_runtime_on_more(first: int) -> None:
    run(range(first, first + 100), "ref")


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(10000, 20000, 1000))
def test_code_agrees_with_ref_on_more(first: int) -> None:
    run(range(first, first + 30), "cpu", "cpu:bound", "cpu:fp16")


@reachable
@pytest.mark.nightly
@pytest.mark.parametrize("first", range(300000, 309000, 1000))
def test_emulated_code_agrees_with_ref_on_more(first: int) -> None:
    run(range(first, first + 20), *FAR)


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, wrong_maximum, CpuTarget)
    networks = (draw_network(number) for number in range(40))
    faulty = [network for network in networks if any(node.op_type == "ReduceMax" for node in network.nodes)][:3]
    assert any(compare_network(network, "cpu").kind == "differs" for network in faulty)


def test_every_template_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one that never finds what it needs would go unseen."""
    drawn: Counter[str] = Counter()

    def counted(template: Template) -> Template:
        def add(network: Network) -> None:
            before = len(network.values)
            template(network)
            drawn[f"{template.__module__}.{template.__name__}"] += len(network.values) > before

        return add

    monkeypatch.setattr(compared, "TEMPLATES", {counted(kind): share for kind, share in TEMPLATES.items()})
    for number in range(150):
        draw_network(number)
    assert len(+drawn) == len(TEMPLATES), drawn

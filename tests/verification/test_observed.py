"""What a run shows of its results, where they don't lie in memory as the model has them."""

from __future__ import annotations

import pytest

import argosy
from benchmarks.models import catalog

ARCH = "gfx942"


@pytest.mark.parametrize("net", ["two_branches_small", "vit_small"])
def test_axes_that_lie_in_another_order_are_shown_in_their_own(net: str) -> None:
    program = argosy.load_onnx(catalog.make(net))
    artifact = argosy.compile(program, targets=[ARCH])
    (variant,) = artifact.variants
    assert any(buffer.order for buffer in artifact.plan(variant.key).buffers), "channels last, heads beside each other"
    options = {"device": f"emulated:{ARCH}", "inputs": catalog.feeds(net), "per_instruction": True}
    report = argosy.verify(program, artifact, **options)  # type: ignore[arg-type]
    seen = [entry for entry in report.instructions if entry.observed]
    assert seen
    assert [entry.node for entry in seen if entry.accumulated_mismatches] == []

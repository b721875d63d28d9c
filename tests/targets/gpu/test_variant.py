"""Kernels that spill give way to the next config, where there is one; those that the toolchain refuses do, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from onnx import TensorProto, helper

import argosy
from argosy.artifact.plan import LaunchStep, StraightBlock
from argosy.errors import CompileError
from argosy.targets.gpu import variant
from argosy.toolchains.triton import CompiledKernel, GpuCode, Refused, TritonSource

Answer = Callable[[TritonSource], CompiledKernel | Refused]


def product_model() -> bytes:
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (256, 256)) for name in "abc"]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "product", kinds[:2], kinds[2:])
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    return content


def entry_taken(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> tuple[str, list[str]]:
    """The entry of the product's kernel, and those that were compiled, with a toolchain that answers so."""
    asked: list[str] = []

    def compiled(sources: Sequence[TritonSource], _: GpuCode, **__: object) -> list[CompiledKernel | Refused]:
        asked.extend(source.entry for source in sources if is_product(source) and source.entry not in asked)
        return [answer(source) if is_product(source) else made(source) for source in sources]

    monkeypatch.setattr(variant, "compile_kernels", compiled)
    artifact = argosy.compile(product_model(), targets=("gfx942",), precision="fp16", strict=True)
    (block,) = artifact.plan(artifact.variants[0].key).body
    assert isinstance(block, StraightBlock)
    entries = [step.entry for step in block.steps if isinstance(step, LaunchStep)]
    (entry,) = (entry for entry in entries if entry in asked)
    return entry, asked


def is_product(source: TritonSource) -> bool:
    return "tl.dot" in source.text


def made(source: TritonSource, spilled: int = 0, shared: int = 0) -> CompiledKernel:
    return CompiledKernel("hsaco", b"", "", source.entry, 256, shared, spilled=spilled)


def test_the_first_config_that_does_not_spill_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    spills: dict[str, int] = {}

    def answer(source: TritonSource) -> CompiledKernel:
        return made(source, spills.setdefault(source.entry, 300 if len(spills) < 2 else 0))

    taken, asked = entry_taken(monkeypatch, answer)
    assert taken == asked[2]
    assert len(asked) == 3


def test_where_all_spill_one_that_spills_less_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    spills: dict[str, int] = {}

    def answer(source: TritonSource) -> CompiledKernel:
        return made(source, spills.setdefault(source.entry, 40 if len(spills) == 1 else 300))

    taken, asked = entry_taken(monkeypatch, answer)
    assert taken in asked
    assert len(asked) <= 20
    assert spills[taken] == 300 or taken == asked[1]


def test_a_few_registers_in_memory_are_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, asked = entry_taken(monkeypatch, lambda source: made(source, spilled=4))
    assert [taken] == asked


@pytest.mark.parametrize("why", ["shared memory", "Triton"])
def test_what_can_not_run_is_not_taken(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    first: list[str] = []

    def answer(source: TritonSource) -> CompiledKernel | Refused:
        first.append(source.entry)
        if source.entry != first[0]:
            return made(source)
        return made(source, shared=1 << 20) if why == "shared memory" else Refused("it crashed")

    taken, asked = entry_taken(monkeypatch, answer)
    assert taken == asked[1]


def test_where_nothing_compiles_the_error_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match="it crashed"):
        entry_taken(monkeypatch, lambda _: Refused("it crashed"))

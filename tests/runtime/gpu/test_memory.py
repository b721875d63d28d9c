"""The memory that a variant asks for is what a run takes."""

from __future__ import annotations

import pytest

from argosy.artifact.plan import BufferRecord, InputDim, StraightBlock
from argosy.artifact.program import SymbolRecord
from argosy.errors import CompileError
from argosy.ir.op import Env
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.memory import check_memory, device_memory
from tests.runtime.gpu.fakes import executor, faked, given, launch, numbers, plan, planned


def chain(size: int, length: int) -> tuple[list[BufferRecord], list[StraightBlock]]:
    kind = f"float32[{size}]"
    buffers = [given(kind), *(planned(kind) for _ in range(length))]
    return buffers, [StraightBlock(tuple(launch("scale", [at], [at + 1], [size, 2]) for at in range(length)))]


@pytest.mark.parametrize(("size", "length"), [(1000, 1), (1000, 2), (1 << 16, 7), (3, 4)])
def test_it_is_what_a_run_takes(size: int, length: int) -> None:
    buffers, body = chain(size, length)
    record = plan({"x": 0}, {"y": length}, buffers, body)
    with faked("cuda"):
        made = executor(record)
        made.run([numbers(size)], Env())
        assert device_memory(record) == made.memory
    rounded = -(-4 * size // 256) * 256
    assert device_memory(record) == 2 * rounded, "what is needed at a time are two buffers"


def test_sizes_of_the_run_count_as_the_least_that_they_may_be() -> None:
    record = plan(
        {"x": 0}, {"y": 1}, [given("float32[N]"), planned("float32[N]")],
        [StraightBlock((launch("scale", [0], [1], ["N", 2]),))],
        symbols=(SymbolRecord("N", 640, 1 << 30),), shapes=(InputDim("N", 0, 0),),
    )  # fmt: skip
    assert device_memory(record) == 2 * 4 * 640


def test_more_than_the_device_has_is_told_and_strict_refuses(caplog: pytest.LogCaptureFixture) -> None:
    arch = find_gpu("h200")
    assert arch is not None
    assert arch.product.memory is not None
    check_memory(arch.product.memory, arch, strict=True)
    assert not caplog.records
    check_memory(arch.product.memory + 1, arch, strict=False)
    assert "bytes of device memory" in caplog.text
    with pytest.raises(CompileError, match="h200 has"):
        check_memory(arch.product.memory + 1, arch, strict=True)

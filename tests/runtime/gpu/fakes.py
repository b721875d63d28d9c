"""Fake drivers and plans for them: see fake/core.h."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest import mock

import msgspec
import numpy as np

from argosy.artifact.artifact import PRODUCER, Artifact, CompiledVariant
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.manifest import SCHEMA, Manifest, ModelInfo, Requirements, ValueInfo, VariantRecord, variant_key
from argosy.artifact.plan import (
    ArenaRecord,
    BindingRecord,
    Block,
    BufferRecord,
    CodeRecord,
    HiddenArgument,
    LaunchStep,
    PlanRecord,
    PointerArgument,
    ScalarArgument,
    Size,
)
from argosy.artifact.plan_check import check_plan
from argosy.drivers import discovery
from argosy.ir.literal import Literal
from argosy.runtime.gpu import device as device_module
from argosy.runtime.gpu.executor import DeviceExecutor
from tests.runtime.gpu.headers import FLAGS, zig_cc

__all__ = ["CODE", "KINDS", "Fake", "artifact", "executor", "faked", "given", "launch", "numbers", "plan", "planned"]

KINDS = ("cuda", "hip")
CODE = b"argosy-fake\nadd add 32\nscale scale 32\nleast least 16\n"
_SOURCES = Path(__file__).parent / "fake"
_ARCHS = {"cuda": ("nvidia", "sm_94"), "hip": ("amd", "gfx942")}


@lru_cache(maxsize=2)
def _built(kind: str) -> str:
    path = Path(mkdtemp(), f"libfake{kind}.so")
    flags = ("-shared", "-nostdlib", "-fPIC", "-O1", "-fno-sanitize=all", "-fvisibility=hidden", "-Werror")
    quiet = ("-Wno-deprecated-declarations", "-Wno-unused-function")
    zig_cc(*FLAGS[kind], *flags, *quiet, str(_SOURCES / f"{kind}.c"), "-o", str(path))
    return str(path)


class Fake:
    """A fake driver's own side: what went wrong, what lives, what it shall refuse."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.path = _built(kind)
        self.library = ctypes.CDLL(self.path)
        self.library.fake_said.restype = ctypes.c_char_p
        self.library.fake_limit.argtypes = [ctypes.c_size_t]

    @property
    def said(self) -> str:
        """Everything that it was asked for and must not be."""
        return (self.library.fake_said() or b"").decode()

    @property
    def alive(self) -> dict[str, int]:
        """What was made and not given back, by kind."""
        kinds = ("memory", "host", "stream", "event", "module", "graph", "executable")
        counts = {kind: self.library.fake_alive(kind.encode()) for kind in kinds}
        return {kind: count for kind, count in counts.items() if count}

    def fail(self, function: str, code: int, after: int = 0) -> None:
        """Let the call of a function (by its name in the table) after `after` others give an error code."""
        self._failing = function.encode()
        self.library.fake_fail(self._failing, code, after)

    def device(self, index: int, arch: str, pci: str, units: int = 4, wave: int = 64) -> None:
        """Let there be a device."""
        self.library.fake_device(index, f"Fake {index}".encode(), arch.encode(), pci.encode(), units, wave)


@contextmanager
def faked(kind: str, path: str | None = None) -> Iterator[Fake]:
    """A machine whose one driver is a fake of a kind, with one device; fresh, and checked when it ends."""
    fake = Fake(kind)
    fake.library.fake_reset()
    caches = (discovery.driver, discovery.devices, device_module.open_device)
    for cache in caches:
        cache.cache_clear()
    with mock.patch.object(discovery, "_candidates", lambda asked: [path or fake.path] if asked == kind else []):
        yield fake
    for cache in caches:
        cache.cache_clear()
    assert not fake.said, fake.said


def given(kind: str) -> BufferRecord:
    """The buffer of an input."""
    return BufferRecord("input", kind)


def planned(kind: str, **fields: Any) -> BufferRecord:
    """A planned buffer."""
    return BufferRecord("planned", kind, arena=0, **fields)


def launch(
    entry: str,
    reads: Sequence[int],
    writes: Sequence[int],
    sizes: Sequence[Size] = (),
    *,
    grid: tuple[Size, Size, Size] = (1, 1, 1),
    fault: bool = False,
    source: str = "",
) -> LaunchStep:
    """A launch whose block holds the buffers read, those written, a word for faults, and then sizes."""
    buffers = (*reads, *writes)
    arguments: list[Any] = [PointerArgument(8 * slot, number) for slot, number in enumerate(buffers)]
    if fault:
        arguments.append(HiddenArgument(8 * len(arguments), 8, "fault"))
    arguments += [ScalarArgument(8 * (len(arguments) + slot), "int64", size) for slot, size in enumerate(sizes)]
    return LaunchStep(
        0, entry, grid, (64, 1, 1), 8 * len(arguments), tuple(arguments), tuple(reads), tuple(writes),
        source=source or f"node {entry}",
    )  # fmt: skip


def plan(
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    buffers: Sequence[BufferRecord],
    body: Sequence[Block],
    **more: Any,
) -> PlanRecord:
    """A valid plan."""
    record = PlanRecord(
        tuple(BindingRecord(name, number) for name, number in inputs.items()),
        tuple(BindingRecord(name, number) for name, number in outputs.items()),
        tuple(buffers),
        tuple(body),
        arenas=(ArenaRecord("device", 256),),
        code=(CodeRecord("code/kernels.cubin", "cubin"),),
        **more,
    )
    check_plan(record, "plan")
    return record


def executor(record: PlanRecord, weights: Mapping[str, Literal] | None = None) -> DeviceExecutor:
    """An executor for a plan over the toy kernels, on the first device."""
    decoder = Decoder(record.modules, decode_symbols(record.symbols), lambda ref: (weights or {})[ref.sha256], "plan")
    return DeviceExecutor(record, decoder, "plan", device_module.open_device(discovery.devices()[0]), [CODE])


def artifact(record: PlanRecord, kind: str, **fields: Any) -> Artifact:
    """An artifact with one variant of this plan for the fake device, and no program."""
    family, arch = _ARCHS[kind]
    row: dict[str, Any] = {"family": family, "arch": arch, "words": f"{arch}, fp32", "requirements": Requirements()}
    variant = VariantRecord("", **(row | fields))
    variant = msgspec.structs.replace(variant, key=variant_key(variant))
    inputs, outputs = (
        tuple(ValueInfo(entry.name, record.buffers[entry.buffer].type) for entry in bindings)
        for bindings in (record.inputs, record.outputs)
    )
    manifest = Manifest(
        SCHEMA, PRODUCER, ModelInfo("bench", "0" * 64), inputs, outputs, ("slim",), record.symbols, (variant,)
    )
    return Artifact(manifest, compiled=[CompiledVariant(variant, record, {"code/kernels.cubin": CODE})])


def numbers(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Small whole numbers, whose sums are exact."""
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) % 97

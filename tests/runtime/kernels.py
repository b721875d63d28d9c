"""Kernels written by hand, compiled by the toolchain, and plans that call them: the runtime's own test bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from argosy.artifact.artifact import PRODUCER, Artifact, CompiledVariant
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.encode import Encoder
from argosy.artifact.manifest import SCHEMA, Manifest, ModelInfo, ValueInfo, VariantRecord, variant_key
from argosy.artifact.plan import (
    ArenaRecord,
    BindingRecord,
    Block,
    BufferRecord,
    CallStep,
    CodeRecord,
    EvaluateStep,
    PlanRecord,
    PointerArgument,
    ScalarArgument,
    Size,
    Step,
    StraightBlock,
)
from argosy.artifact.plan_check import check_plan
from argosy.ir.literal import Literal
from argosy.ir.op import Env, Op
from argosy.runtime.devices.cpu import Library, LoadedCode
from argosy.runtime.executor import Executor
from argosy.targets.cpu.arch import native
from argosy.targets.cpu.host import host_abi, host_runtime
from argosy.toolchains.zig import Source, compile_objects, link

__all__ = ["artifact", "call", "code", "evaluate", "executor", "library_bytes", "plan", "planned", "run", "straight"]

ARENA = (ArenaRecord("host", 64),)

KERNELS = r"""
#define POINTER(slot) (((void *const *)params)[slot])
#define SIZE(slot) (((const int64_t *)params)[slot])
#define KERNEL(name) ARGOSY_EXPORT void name(const void *params, int64_t chunk, int64_t chunks, void *scratch)
#define EACH(i, n) for (int64_t i = (n)*chunk / chunks; i < (n) * (chunk + 1) / chunks; ++i)

KERNEL(add) { /* a, b, y, n */
    const float *a = POINTER(0), *b = POINTER(1);
    float *y = POINTER(2);
    EACH(i, SIZE(3)) y[i] = a[i] + b[i];
}

KERNEL(scale) { /* x, y, n, factor: through scratch, so that workers must not share it */
    const float *x = POINTER(0);
    float *y = POINTER(1), *part = scratch;
    int64_t first = SIZE(2) * chunk / chunks;
    EACH(i, SIZE(2)) part[i - first] = x[i];
    EACH(i, SIZE(2)) y[i] = part[i - first] * (float)SIZE(3);
}

KERNEL(gather) { /* x, index, y, rows, n */
    const float *x = POINTER(0);
    const int64_t *index = POINTER(1);
    float *y = POINTER(2);
    EACH(i, SIZE(4)) {
        if (index[i] < 0 || index[i] >= SIZE(3)) {
            argosy_fail(scratch, ARGOSY_INDEX, index[i]);
            return;
        }
        y[i] = x[index[i]];
    }
}

KERNEL(count_positive) { /* x, count, n: one chunk */
    int64_t count = 0;
    for (int64_t i = 0; i < SIZE(2); ++i) count += ((const float *)POINTER(0))[i] > 0;
    *(int64_t *)POINTER(1) = count;
}

KERNEL(positive) { /* x, y, n: one chunk */
    float *y = POINTER(1);
    for (int64_t i = 0; i < SIZE(2); ++i) {
        float x = ((const float *)POINTER(0))[i];
        if (x > 0) *y++ = x;
    }
}

KERNEL(spin) { /* x, y, n, rounds: long work */
    const float *x = POINTER(0);
    float *y = POINTER(1);
    EACH(i, SIZE(2)) {
        float v = x[i];
        for (int64_t r = 0; r < SIZE(3); ++r) v = v * 0.5f + 1.0f;
        y[i] = v;
    }
}
"""


def library_bytes() -> bytes:
    """The shared object with the kernels, for this machine."""
    target = native().code
    sources = [Source("test kernels", f"{host_abi()}\n{KERNELS}"), host_runtime()]
    return link(compile_objects(sources, target), target)


def code(threads: int = 1) -> LoadedCode:
    """The kernels, loaded."""
    return LoadedCode([Library(library_bytes(), "test")], threads)


def planned(kind: str, **fields: Any) -> BufferRecord:
    """A planned buffer."""
    return BufferRecord("planned", kind, arena=0, **fields)


def call(
    entry: str,
    reads: Sequence[int],
    writes: Sequence[int],
    sizes: Sequence[Size] = (),
    *,
    chunks: Size = 1,
    scratch: int = 0,
    source: str = "",
) -> CallStep:
    """A call whose block holds the buffers read, those written, and then sizes."""
    buffers = (*reads, *writes)
    arguments: tuple[PointerArgument | ScalarArgument, ...] = (
        *(PointerArgument(8 * slot, number) for slot, number in enumerate(buffers)),
        *(ScalarArgument(8 * (len(buffers) + slot), "int64", size) for slot, size in enumerate(sizes)),
    )
    return CallStep(
        0, entry, chunks, 8 * len(arguments), arguments, tuple(reads), tuple(writes), scratch, source or entry
    )


def evaluate(op: Op, operands: Sequence[int | None], results: Sequence[int]) -> EvaluateStep:
    """An evaluate step."""
    return EvaluateStep(op.name, op.version, tuple(results), tuple(operands), Encoder().attributes(op), op.name)


def straight(*steps: Step) -> tuple[Block, ...]:
    """Steps as the blocks of a plan."""
    return (StraightBlock(steps),)


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
        arenas=ARENA,
        code=(CodeRecord("code/kernels.so", "elf"),),
        **more,
    )
    check_plan(record, "plan")
    return record


def executor(record: PlanRecord, weights: Mapping[str, Literal] | None = None, *, threads: int = 1) -> Executor:
    """An executor for a plan over the kernels."""
    decoder = Decoder(record.modules, decode_symbols(record.symbols), lambda ref: (weights or {})[ref.sha256], "plan")
    return Executor(record, decoder, "plan", code(threads))


def run(made: Executor, *arguments: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """One run."""
    return made.run(arguments, Env())


def artifact(record: PlanRecord, **fields: Any) -> Artifact:
    """An artifact with one variant of this plan for this machine's CPU, and no program."""
    arch = native()
    row: dict[str, Any] = {
        "family": arch.family,
        "arch": arch.name,
        "words": f"{arch.name}, fp32",
        "requirements": arch.requirements(),
    } | fields
    variant = VariantRecord("", **row)
    variant = msgspec.structs.replace(variant, key=variant_key(variant))
    inputs, outputs = (
        tuple(ValueInfo(entry.name, record.buffers[entry.buffer].type) for entry in bindings)
        for bindings in (record.inputs, record.outputs)
    )
    manifest = Manifest(
        SCHEMA, PRODUCER, ModelInfo("bench", "0" * 64), inputs, outputs, ("slim",), record.symbols, (variant,)
    )
    return Artifact(manifest, compiled=[CompiledVariant(variant, record, {"code/kernels.so": library_bytes()})])

"""`pack-models FOLDER`: real models, compiled here for a device elsewhere, with what ONNX Runtime gives for them.

One artifact of a model serves both of its sizes (a model of fixed sizes gets two seeds). It is compiled without host
steps where that is possible; where not, the pack says which there are. The first pack has the most models.

A model whose file is larger than a pack is compiled with its large weights rounded to bfloat16, which take two thirds
of the room; what ONNX Runtime gives is of that model then, and the pack says so.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

import argosy
from argosy.errors import CompileError
from benchmarks.models import real
from tests.hardware.packs import LIMIT, PackWriter
from tests.hardware.trials import MODELS, Run, Trial, add_trial

__all__ = ["add", "ordered", "rounded", "trial"]

_FEW: Final = 1024
"""Weights of at most so many elements are not rounded."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("pack-models", help="compile real models into packs", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs go")
    parser.add_argument("--arch", default="sm_90", help="the arch (default: sm_90)")
    parser.add_argument("--model", action="append", help="only these (default: all that every change is tested with)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    models = [real.model(name) for name in options.model] if options.model else real.models("per-change")
    trials = []
    for entry in models:
        start = time.monotonic()
        trials.append(made := trial(entry, options.arch))
        _say(f"{entry.id}: {made.note}, {len(made.artifact) / 1024:.0f} KiB, {time.monotonic() - start:.0f} s")
    with PackWriter(options.folder, MODELS) as writer:
        for each in ordered(trials):
            add_trial(writer, each)
    for path in writer.written:
        _say(f"{path.name}: {path.stat().st_size / (1 << 20):.1f} MiB")
    return 0


def ordered(trials: Sequence[Trial], limit: int = LIMIT) -> list[Trial]:
    """Trials in an order in which they fill few packs, the first of which has the most of them.

    Each goes into the first pack that has room, the largest first.
    """
    sizes = {each.name: _bytes(each) for each in trials}
    packs: list[list[Trial]] = []
    for each in sorted(trials, key=lambda each: (-sizes[each.name], each.name)):
        room = (pack for pack in packs if sum(sizes[one.name] for one in pack) + sizes[each.name] <= limit)
        if (pack := next(room, None)) is None:
            packs.append(pack := [])
        pack.append(each)
    return [each for pack in sorted(packs, key=len, reverse=True) for each in pack]


def _bytes(trial: Trial) -> int:
    """About what a trial takes in a pack."""
    values = [value for run in trial.runs for value in (*run.inputs.values(), *run.expected.values())]
    return len(zlib.compress(trial.artifact)) + sum(np.asarray(value).nbytes for value in values)


def trial(entry: real.RealModel, arch: str, limit: int = LIMIT) -> Trial:
    """The trial of a real model, whose weights are rounded where its file is longer than `limit`."""
    path = entry.path()
    model, notes = onnx.load(path), []
    if path.stat().st_size > limit:
        model = rounded(model)
        notes.append("large weights rounded to bfloat16")
    program = argosy.load_onnx(model)
    try:
        artifact = argosy.compile(program, targets=[arch], strict=True)
        notes.insert(0, "strict")
    except CompileError as error:
        artifact = argosy.compile(program, targets=[arch])
        notes.insert(0, f"with host steps: {error.what}")
    runs = [(dict(sizes), seed) for sizes in entry.sizes for seed in ((0,) if len(entry.sizes) > 1 else (0, 1))]
    return Trial(
        entry.id,
        artifact.to_bytes(),
        tuple(_made(model, sizes, seed, entry.feeds(sizes, seed)) for sizes, seed in runs),
        entry.quantised,
        "; ".join(notes),
    )


def _made(model: onnx.ModelProto, sizes: dict[str, int], seed: int, feeds: dict[str, Any]) -> Run:
    from tests.models.oracle import expected_outputs  # noqa: PLC0415 - where packs are run there is no ONNX Runtime

    words = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return Run(words or f"seed {seed}", feeds, expected_outputs(model, feeds))


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model with its large float32 weights as near as bfloat16 comes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > _FEW:
            short = array.astype(ml_dtypes.bfloat16).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(short, tensor.name))
    return copy


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()

"""Budgets of the CPU target: compiling cold and warm, an artifact's first result, the arena, the size of the file."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

import argosy
from argosy.artifact.artifact import Artifact
from argosy.runtime.planned_memory import PlannedMemory
from benchmarks.cpu.cases import Case, Files, sizes, write
from benchmarks.fresh_process import measured, median_seconds

__all__ = ["cpu_rows"]

MODELS: Final = ("resnet50", "bert_base")
Row = tuple[str, str, str]

_COMPILE: Final = """
import os
os.environ["ARGOSY_CACHE"] = sys.argv[3]
from argosy.cli.main import main
assert main(["compile", sys.argv[1], *sys.argv[4:], "--arch", "cpu", "-o", sys.argv[2], "--quiet"]) == 0
"""
# What is imported counts for nothing; the artifact is opened, its weights are checked, it runs once.
_FIRST: Final = """
import time
import numpy as np
import argosy.runtime.session, argosy.runtime.devices.cpu
from argosy.artifact.artifact import Artifact
from argosy.artifact.program import LiteralRef
with np.load(sys.argv[2]) as stored:
    feeds = {name: stored[f"v{place}"] for place, name in enumerate(json.loads(str(stored["names"])))}
begin = time.process_time()
artifact = Artifact.open(sys.argv[1])
(variant,) = artifact.variants
plan = artifact.plan(variant.key)
opened = time.process_time()
for buffer in plan.buffers:
    if isinstance(buffer.literal, LiteralRef):
        artifact.literal(buffer.literal)
checked = time.process_time()
argosy.runtime.session.Session(artifact, threads=1).run(feeds)
told = [opened - begin + time.process_time() - checked, checked - opened]
"""


def cpu_rows(folder: Path, runs: int) -> list[Row]:
    """What was measured, the figure, the bar."""
    rows: list[Row] = []
    for name in MODELS:
        files = Files(folder / name)
        files.folder.mkdir()
        write(Case(name, "built", quantised=False), files)
        rows += _compile_rows(name, files, runs)
        rows += _first_rows(name, files, runs)
        rows += _size_rows(name, files)
    return rows


def _compile_rows(name: str, files: Files, runs: int) -> list[Row]:
    """Cold with an empty cache each time, warm with that of the last."""
    words = (str(files.model), str(files.artifact))
    dims = [word for given, shape in sizes(files.feeds()).shapes for word in ("--input-shape", _shape(given, shape))]
    cold = []
    with tempfile.TemporaryDirectory() as base:
        for number in range(runs):
            cache = f"{base}/{number}"
            cold.append(measured(_COMPILE, *words, cache, *dims)[0])
        warm = median_seconds(_COMPILE, *words, cache, *dims, runs=runs)
    return [
        (f"{name}: compile, empty cache", f"{statistics.median(cold):.2f} CPU s", "under 15 CPU s"),
        (f"{name}: compile, all kernels cached", f"{warm:.2f} CPU s", "under 2 CPU s"),
    ]


def _shape(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}={','.join(map(str, shape))}"


def _first_rows(name: str, files: Files, runs: int) -> list[Row]:
    told: list[Any] = [measured(_FIRST, str(files.artifact), str(files.folder / "feeds.npz"))[2] for _ in range(runs)]
    first, checks = np.median(told, axis=0)
    bar = "under 0.5 CPU s" if name == "resnet50" else ""
    return [
        (f"{name}: artifact to first result, after imports", f"{first:.2f} CPU s", bar),
        (f"{name}: ... checking its weights, apart", f"{checks:.2f} CPU s", ""),
    ]


def _size_rows(name: str, files: Files) -> list[Row]:
    artifact = Artifact.open(files.artifact)
    (variant,) = artifact.variants
    placed = PlannedMemory(artifact.plan(variant.key), name).placement({})
    weights = argosy.Session(artifact).memory
    beyond = (files.artifact.stat().st_size - weights) / 1e6
    return [
        (
            f"{name}: arena of {placed.size / 1e6:.1f} MB over what is live",
            f"{placed.size / placed.live:.2f} x",
            "1.10",
        ),
        (f"{name}: artifact beyond its weights, one variant", f"{beyond:.2f} MB", "at most 1.5 MB"),
    ]

"""From a file to the first result: wall time by stage, in a fresh process, of an artifact that holds its weights.

What a process pays once whatever it loads (imports, the driver's context) and the checks of the weights' hashes are
told apart. Packs hold no weights: those are made here first, and the artifact is written anew with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

import argosy
from argosy.artifact.artifact import Artifact, CompiledVariant
from argosy.artifact.encode import encode_program
from argosy.artifact.manifest import variant_folder
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from benchmarks.gpu.cases import PRECISION, Case, known_gpu
from benchmarks.models import catalog

__all__ = ["BAR", "STAGES", "completed", "load_times"]

BAR: Final = 0.5
"""Seconds from the file to the first result, without what is told apart."""
STAGES: Final = ("imports", "driver and context", "open", "weight checks", "load", "first run", "later run")
_COUNTED: Final = ("open", "load", "first run")
_RUNS: Final = 5

_LOAD: Final = """
import json, sys, time
marks = [time.perf_counter()]
mark = lambda: marks.append(time.perf_counter())
import numpy as np, argosy
from argosy.runtime.gpu.device import open_device
from argosy.drivers.discovery import devices
mark()
device = open_device(devices()[0])
device.leave(device.enter())
mark()
artifact = argosy.Artifact.open(sys.argv[1])
mark()
file = artifact.as_file()
for digest in artifact.manifest.weights:
    file.weight(digest)
mark()
session = argosy.Session(artifact, device="cuda")
mark()
given = dict(np.load(sys.argv[2]))
marks[-1:] = [marks[-1], time.perf_counter()]
session.run(given)
mark()
session.run(given)
mark()
seconds = [after - before for before, after in zip(marks, marks[1:])]
del seconds[5]  # the inputs were read
print(json.dumps(seconds))
"""


def completed(pack: Path, case: Case, arch: str, path: Path) -> None:
    """Write the artifact of a pack with its weights."""
    options, row = CompileOptions(precision=PRECISION), known_gpu(arch)
    program = argosy.load_onnx(catalog.make(case.model), dims=dict(case.dims))
    module = PassManager(tuple(pipeline(options))).run(program.main)
    weights = encode_program(program)[1] | dict(lower_module(module, row, options, {}, {}).weights)
    artifact = Artifact.open(pack)
    file = artifact.as_file()
    variants = []
    for record in artifact.variants:
        folder = variant_folder(record.key)
        names = [name.removeprefix(folder) for name in artifact.manifest.entries if name.startswith(folder)]
        entries = {name: artifact.entry(record.key, name) for name in names if name != "plan.msgpack"}
        variants.append(CompiledVariant(record, artifact.plan(record.key), entries))
    missing = artifact.manifest.weights.keys() - weights.keys()
    if missing:
        raise SystemExit(f"{pack}: {len(missing)} weights are not those made here: the pack is of another version")
    manifest = msgspec.structs.replace(artifact.manifest, entries={}, weights={})
    used = {digest: weights[digest] for digest in artifact.manifest.weights}
    Artifact(manifest, program=file.read_program(), compiled=variants, weights=used).save(path, weights="embed")


def load_times(pack: Path, case: Case, arch: str, given: dict[str, Any], runs: int = _RUNS) -> dict[str, float]:
    """Median seconds of each stage over fresh processes; `counted` is what the bar is for."""
    import numpy as np  # noqa: PLC0415 - with the folder that it writes to

    with tempfile.TemporaryDirectory() as name:
        path, inputs = Path(name, "full.argosy"), Path(name, "inputs.npz")
        completed(pack, case, arch, path)
        np.savez(inputs, **given)
        found = []
        for _ in range(runs):
            command = [sys.executable, "-c", _LOAD, str(path), str(inputs)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(dict(zip(STAGES, json.loads(done.stdout), strict=True)))
    times = {stage: median(each[stage] for each in found) for stage in STAGES}
    counted = median(sum(each[stage] for stage in _COUNTED) for each in found)
    return times | {"counted": counted}

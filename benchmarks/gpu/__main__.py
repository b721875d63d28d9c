"""`python -m benchmarks.gpu pack FOLDER` compiles without a device, `… run FOLDER` measures there beside PyTorch.

Packs hold no weights (those are made again where they run) and take at most 48 MiB. Each output is compared with ONNX
Runtime's in float32. Times are medians of 30 replays of one captured graph; all in µs, in one process.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final

import numpy as np

import argosy
from benchmarks.gpu.cases import CASES, Case, compile_case, feeds, known_gpu, weights
from benchmarks.models import catalog

_MOST: Final = 48 << 20
_NEAR: Final = 1e-2
"""How far outputs may be from float32's, beside their greatest."""


def pack(folder: Path, arch: str, cases: list[Case]) -> None:
    """Write an artifact for each case."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        path = folder / f"{case.name}.argosy"
        compile_case(case, arch, path)
        print(f"{case.name:16} {path.stat().st_size / 1024:8.0f} KiB", flush=True)
    if (size := sum(path.stat().st_size for path in folder.glob("*.argosy"))) > _MOST:
        raise SystemExit(f"the pack has {size} bytes, more than {_MOST}")


def run(folder: Path, arch: str, cases: list[Case], *, peers: bool, kernels: int) -> None:
    """Measure the artifacts of a folder."""
    from benchmarks.gpu.ours import measure  # noqa: PLC0415 - needs torch

    row = known_gpu(arch)
    peak, bandwidth = row.product.peak("fp16"), row.product.bandwidth
    gains: list[float] = []
    for case in cases:
        session = argosy.Session(folder / f"{case.name}.argosy", device="cuda", weights=weights(case, arch))
        given = feeds(case, session)
        error = _error(case, given, list(session.run(given).values()))
        ours = measure(session, given)
        line = f"{case.name:16} ours {ours.model:8.1f}  kernels {ours.alone:8.1f}  error {error:.1e}"
        if peak and bandwidth:
            line += f"  roofline {100 * case.roofline(peak, bandwidth) / ours.model:3.0f} %"
        if peers:
            from benchmarks.gpu.peers import times  # noqa: PLC0415

            theirs = times(case)
            gains.append(theirs["compile"] / ours.model)
            line += "".join(f"  {way} {time:8.1f} ({time / ours.model:.2f}x)" for way, time in theirs.items())
        print(line, flush=True)
        for name, (time, count) in list(ours.kernels.items())[:kernels]:
            print(f"    {name:44} {time:8.1f} = {count:3} x {time / count:.2f}", flush=True)
        if not error < _NEAR:
            raise SystemExit(f"{case.name} is {error} off")
    if gains:
        print(f"geometric mean over torch.compile {math.prod(gains) ** (1 / len(gains)):.2f}x")


def _error(case: Case, given: dict[str, np.ndarray], found: list[np.ndarray]) -> float:
    """The greatest distance from ONNX Runtime's outputs in float32, beside the greatest of each."""
    import onnxruntime  # noqa: PLC0415

    model = catalog.make(case.model).SerializeToString()
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, given)
    return max(
        float(np.abs(right - np.asarray(ours, np.float32)).max() / np.abs(right).max())
        for right, ours in zip(expected, found, strict=True)
    )


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("verb", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="h200", help="the GPU to compile for (default: h200)")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES], help="only these")
    parser.add_argument("--no-peers", action="store_true", help="measure no PyTorch")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="print the N kernels that take longest")
    asked = parser.parse_args()
    cases = [case for case in CASES if not asked.case or case.name in asked.case]
    if asked.verb == "pack":
        pack(asked.folder, asked.arch, cases)
    else:
        run(asked.folder, asked.arch, cases, peers=not asked.no_peers, kernels=asked.kernels)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.gpu pack FOLDER` compiles without a device, `… run FOLDER` measures there beside PyTorch.

Packs hold no weights (those are made again where they run) and take at most 48 MiB. Each output is compared with ONNX
Runtime's in float32, or with the formula. Times are medians of replays of one captured graph; all in µs, in one
process. Models come first, then parts of them, each beside the library that does it alone. `… load FOLDER` measures
the way from a file to the first result, `… overhead FOLDER` what runs on arrays of the device add to their graph,
`… sums FOLDER` whether launches sum to the run.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

import argosy
from benchmarks.gpu.cases import CASES, Case, compile_case, feeds, known_gpu, weights
from benchmarks.gpu.parts import ATTENTIONS, Part, attention, pack_attention, parts_of
from benchmarks.models import catalog

_MOST: Final = 48 << 20
_NEAR: Final = 1e-2
"""How far outputs may be from float32's, beside their greatest."""


def pack(folder: Path, arch: str, cases: list[Case]) -> None:
    """Write an artifact for each case, and those of attention."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        path = folder / f"{case.name}.argosy"
        compile_case(case, arch, path)
        print(f"{case.name:16} {path.stat().st_size / 1024:8.0f} KiB", flush=True)
    pack_attention(folder, arch)
    if (size := sum(path.stat().st_size for path in folder.glob("*.argosy"))) > _MOST:
        raise SystemExit(f"the pack has {size} bytes, more than {_MOST}")


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of a model: µs of its graph, of its kernels alone and of the peers, and its error."""

    name: str
    model: float
    alone: float
    error: float
    roofline: float
    peers: Mapping[str, float]
    parts: Sequence[Part] = ()
    kernels: Mapping[str, tuple[float, int]] = field(default_factory=dict)

    def line(self) -> str:
        """As text."""
        share = 100 * self.roofline / self.model
        ways = "".join(f"  {way} {time:8.1f} ({time / self.model:.2f}x)" for way, time in self.peers.items())
        return (
            f"{self.name:16} ours {self.model:8.1f}  kernels {self.alone:8.1f}  error {self.error:.1e}"
            f"  roofline {share:3.0f} %{ways}"
        )


def run(folder: Path, arch: str, cases: list[Case], *, peers: bool, kernels: int, parts: bool) -> dict[str, Any]:
    """Measure the artifacts of a folder, print a line for each, and give all figures."""
    from benchmarks.gpu.ours import measure  # noqa: PLC0415 - needs torch

    product = known_gpu(arch).product
    peak, bandwidth = product.peak("fp16"), product.bandwidth
    if not peak or not bandwidth:
        raise SystemExit(f"nothing public says how fast {arch} is")
    rows: list[Row] = []
    for case in cases:
        session = argosy.Session(folder / f"{case.name}.argosy", device="cuda", weights=weights(case, arch))
        given = feeds(case, session)
        error = _error(case, given, list(session.run(given).values()))
        ours = measure(session, given)
        theirs: Mapping[str, float] = {}
        if peers:
            from benchmarks.gpu.peers import times  # noqa: PLC0415

            theirs = times(case)
        found = parts_of(case, ours.kernels, peak, bandwidth) if parts else []
        least = case.roofline(peak, bandwidth)
        rows.append(Row(case.name, ours.model, ours.alone, error, least, theirs, found, ours.kernels))
        print(rows[-1].line(), flush=True)
        for each in found:
            print(f"    {each.line()}", flush=True)
        for name, (time, count) in list(ours.kernels.items())[:kernels]:
            print(f"    {name:44} {time:8.1f} = {count:3} x {time / count:.2f}", flush=True)
        if not error < _NEAR:
            raise SystemExit(f"{case.name} is {error} off")
    alone = [attention(folder, each, peak, bandwidth) for each in ATTENTIONS] if parts else []
    for each in alone:
        print(each.line(), flush=True)
    means = {way: _mean([row.peers[way] / row.model for row in rows]) for way in (rows[0].peers if rows else ())}
    for way, mean in means.items():
        print(f"geometric mean over {way} {mean:.2f}x")
    return {"models": [asdict(row) for row in rows], "attention": [asdict(part) for part in alone], "means": means}


def load(folder: Path, arch: str, cases: list[Case]) -> None:
    """Print where the time from a file to the first result goes."""
    from benchmarks.gpu.load import BAR, STAGES, load_times  # noqa: PLC0415 - needs the compiler

    for case in cases:
        pack = folder / f"{case.name}.argosy"
        given = feeds(case, argosy.Session(pack, device="cuda", weights=weights(case, arch)))
        found = load_times(pack, case, arch, given)
        stages = "  ".join(f"{stage} {found[stage] * 1e3:.0f} ms" for stage in STAGES)
        print(f"{case.name:16} {found['counted']:.3f} s (open, load, first run; bar {BAR} s)  {stages}", flush=True)


def overheads(folder: Path, arch: str, cases: list[Case]) -> None:
    """Print what runs on arrays of the device take beyond the replay of their graph."""
    from benchmarks.gpu.overhead import overhead  # noqa: PLC0415 - needs torch

    for case in cases:
        session = argosy.Session(folder / f"{case.name}.argosy", device="cuda", weights=weights(case, arch))
        print(case.name, *overhead(session, feeds(case, session)).lines(), sep="\n", flush=True)


def all_sums(folder: Path, arch: str, cases: list[Case], write: Path | None) -> None:
    """Print whether the launches of runs sum to them; write the reports there, and the traces beside them."""
    from benchmarks.gpu.sums import BAR, sums  # noqa: PLC0415 - needs the compiler

    found = {}
    for case in cases:
        session = argosy.Session(folder / f"{case.name}.argosy", device="cuda", weights=weights(case, arch))
        found[case.name] = sums(session, feeds(case, session))
        print(case.name, *found[case.name].lines(), sep="\n", flush=True)
    if write:
        write.write_text(json.dumps({name: each.report.to_json() for name, each in found.items()}), encoding="utf-8")
        for name, each in found.items():
            trace = json.dumps(each.report.to_trace())
            write.with_name(f"{write.stem}-{name}.trace.json").write_text(trace, encoding="utf-8")
    if far := [name for name, each in found.items() if abs(each.apart) > BAR]:
        raise SystemExit(f"the launches do not sum to the run: {', '.join(far)}")


def _mean(values: Sequence[float]) -> float:
    return math.prod(values) ** (1 / len(values))


def _machine() -> dict[str, Any]:
    """The device and the versions, as results name them."""
    import torch  # noqa: PLC0415

    units = torch.cuda.get_device_properties().multi_processor_count
    return {
        "machine": {"gpu": torch.cuda.get_device_name(), "units": units},
        "versions": {"argosy": argosy.__version__, "torch": torch.__version__, "cuda": torch.version.cuda,
                     "cudnn": torch.backends.cudnn.version(), "numpy": np.__version__},
        "settings": {"precision": "fp16", "unit": "us", "timing": "medians of replays of one captured graph"},
    }  # fmt: skip


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
    parser.add_argument("verb", choices=("pack", "run", "load", "overhead", "sums"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="h200", help="the GPU to compile for (default: h200)")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES], help="only these")
    parser.add_argument("--no-peers", action="store_true", help="measure no PyTorch")
    parser.add_argument("--no-parts", action="store_true", help="measure no parts of the models")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="print the N kernels that take longest")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write all figures there, as JSON")
    asked = parser.parse_args()
    cases = [case for case in CASES if not asked.case or case.name in asked.case]
    if asked.verb == "pack":
        pack(asked.folder, asked.arch, cases)
        return
    if asked.verb == "sums":
        all_sums(asked.folder, asked.arch, cases, asked.write)
        return
    if asked.verb in ("load", "overhead"):
        (load if asked.verb == "load" else overheads)(asked.folder, asked.arch, cases)
        return
    peers, parts = not asked.no_peers, not asked.no_parts
    found = run(asked.folder, asked.arch, cases, peers=peers, kernels=asked.kernels, parts=parts)
    if asked.write:
        asked.write.write_text(json.dumps(_machine() | found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

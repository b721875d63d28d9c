"""Rows of a run as figures and text: who is how much faster, by which models, and where our time goes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks.cpu.contenders import OURS

__all__ = ["group_of", "means", "ratio", "report"]

Row = Mapping[str, Any]
_LEAST: Final = 1.0
"""Milliseconds that the faster peer must take for a model to count."""
_ARENA: Final = 1.10
"""Bytes of an arena over those live at once, from which on it is told."""
GROUPS: Final = {
    "counted": "fp32 models that take the faster peer 1 ms or more",
    "small": "smaller models, which do not count",
    "quantised": "quantised models, which do not count",
    "unmeasured": "no peer that agrees, or a failure",
}


def best_peer(run: Row) -> tuple[str, float] | None:
    """The faster of the peers that agree, and its median in milliseconds."""
    found = [(run["times"][name]["median"], name) for name in run["agreed"]]
    return (min(found)[1], min(found)[0]) if found else None


def ratio(run: Row | None) -> float | None:
    """The time of the faster peer that agrees over ours: above 1, we are faster. None where ours is wrong."""
    if run is None or OURS in run["notes"]:
        return None
    peer = best_peer(run)
    return peer[1] / run["times"][OURS]["median"] if peer else None


def group_of(row: Row) -> str:
    """Where a model is reported; its time at the fewest threads decides."""
    runs = [row["runs"][key] for key in sorted(row["runs"], key=int)]
    if not runs or ratio(runs[0]) is None:
        return "unmeasured"
    if row["quantised"]:
        return "quantised"
    peer = best_peer(runs[0])
    return "counted" if peer and peer[1] >= _LEAST else "small"


def geometric(values: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def means(rows: Sequence[Row], threads: Sequence[int]) -> dict[str, dict[str, float | None]]:
    """The geometric mean of the ratios, by group and thread count."""
    return {
        group: {
            str(count): geometric(
                found
                for row in rows
                if group_of(row) == group and (found := ratio(row["runs"].get(str(count)))) is not None
            )
            for count in threads
        }
        for group in GROUPS
        if group != "unmeasured"
    }


def report(results: Row, *, kernels: int = 0) -> str:
    """The whole text; `kernels` of our slowest calls a model."""
    rows, threads = results["models"], results["settings"]["threads"]
    machine, versions = results["machine"], results["versions"]
    lines = [
        f"CPU: {machine['cpu']}, {machine['cores']} cores, level {machine['level']}",
        f"versions: {', '.join(f'{name} {version}' for name, version in versions.items())}",
        f"precision {results['settings']['precision']}, {results['settings']['rounds']} rounds, engines in turn",
        "CPU time at 1 thread, wall time else; medians in milliseconds",
        "ratio: the faster peer whose outputs agree over ours; above 1, ours is faster",
    ]
    for count in threads:
        for group, title in GROUPS.items():
            found = [row for row in rows if group_of(row) == group and str(count) in row["runs"]]
            if found:
                lines += ["", f"{count} thread{'s' if count > 1 else ''}: {title}", *_table(found, str(count))]
                mean = means(found, [count]).get(group, {}).get(str(count))
                if mean is not None:
                    lines.append(f"{'geometric mean':58} {mean:39.2f}")
    lines += _failures(rows)
    if kernels:
        for row in rows:
            lines += _kernels(row, kernels)
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row], count: str) -> list[str]:
    lines = [f"{'model':58} {'ours':>9} {'ORT':>9} {'OpenVINO':>9} {'ratio':>9} {'of peak':>8} {'load':>5}  notes"]
    for row in sorted(rows, key=lambda row: ratio(row["runs"][count]) or 0.0):
        run = row["runs"][count]
        cells = [_time(run, name) for name in (OURS, "onnxruntime", "openvino")]
        found = ratio(run)
        share = share_of_peak(row, count)
        notes = [f"{name} {note}" for name, note in run["notes"].items()]
        if row["facts"].get("host_steps"):
            notes.append(f"{row['facts']['host_steps']} host steps")
        arena = row["facts"].get("arena")
        if arena and arena["bytes"] > _ARENA * arena["live"]:
            notes.append(f"arena {arena['bytes'] / arena['live']:.2f} x what is live")
        lines.append(
            f"{row['name']:58} {' '.join(f'{cell:>9}' for cell in cells)}"
            f" {f'{found:.2f}' if found else '–':>9} {f'{share:.0%}' if share else '–':>8} {run['load']:5.1f}"
            f"  {'; '.join(notes)}".rstrip()
        )
    return lines


def _time(run: Row, name: str) -> str:
    times = run["times"].get(name)
    return f"{times['median']:.3f}" if times else "–"


def share_of_peak(row: Row, count: str) -> float | None:
    """Operations a second over those of the FMA peak, measured in the same process, times the threads."""
    work = row["facts"].get("operations")
    run = row["runs"].get(count)
    if not work or run is None:
        return None
    return float(work) / (run["times"][OURS]["median"] * 1e-3) / (run["peak"] * int(count))


def _failures(rows: Sequence[Row]) -> list[str]:
    lines = [f"  {row['name']}: {failure}" for row in rows for failure in row["failures"]]
    return ["", "failures", *lines] if lines else []


def _kernels(row: Row, most: int) -> list[str]:
    found = [run["kernels"] for run in row["runs"].values() if run["kernels"]]
    if not found:
        return []
    lines = ["", f"{row['name']}: our slowest calls"]
    lines += [
        f"  {entry['share']:6.1%} {entry['ms']:9.3f} ms  {entry['kernel']}  {entry['node']}"
        for entry in found[0][:most]
    ]
    return lines

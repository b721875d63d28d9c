"""`python -m benchmarks.gpu.archs FILE`: what a run of `tests/models/test_gpu_archs.py` found.

FILE is what ARGOSY_ARCH_REPORT named there. A line for each arch and precision, then what failed, then the kernels that
keep most registers in memory.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

__all__ = ["table"]


def table(lines: list[dict[str, Any]]) -> list[str]:
    """The lines of a report in words."""
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["precision"], line["arch"]].append(line)
    said = [f"{'':20} models failed kernels refused spilling matrix  seconds  instructions"]
    for (precision, arch), found in groups.items():
        instructions = sorted({name.split(".")[0] for line in found for name in line.get("matrix", {})})
        said.append(
            f"{precision} {arch:15} {len(found):6} {_count(found, 'error'):6} {_sum(found, 'kernels'):7} "
            f"{sum(len(line['refused']) for line in found):7} {sum(len(line.get('spills', ())) for line in found):8} "
            f"{sum(sum(line.get('matrix', {}).values()) for line in found):6} {_sum(found, 'seconds'):8.0f}  "
            f"{' '.join(instructions)[:120]}"
        )
    said += [
        f"FAILED {line['precision']} {line['arch']} {line['model']}: {line['error'][:400]}"
        for line in lines
        if line.get("error")
    ]
    worst = [
        (registers, line["arch"], line["precision"], line["model"], entry)
        for line in lines
        for entry, registers in line.get("spills", {}).items()
    ]
    said += [f"SPILLS {' '.join(map(str, each))}" for each in sorted(worst, reverse=True)[:40]]
    return said


def _count(lines: list[dict[str, Any]], name: str) -> int:
    return sum(bool(line.get(name)) for line in lines)


def _sum(lines: list[dict[str, Any]], name: str) -> Any:
    return sum(line.get(name, 0) for line in lines)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    print("\n".join(table([json.loads(line) for line in text.splitlines()])))

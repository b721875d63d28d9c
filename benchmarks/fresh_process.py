"""CPU seconds and peak memory of code in a fresh Python, children included."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from typing import Final

__all__ = ["RUNS", "measured", "median_seconds"]

RUNS: Final = 5
_BYTECODE = tempfile.TemporaryDirectory()
_END: Final = """
use = resource.getrusage(resource.RUSAGE_SELF)
kids = resource.getrusage(resource.RUSAGE_CHILDREN)
# Unlike ru_maxrss, VmHWM does not begin with the memory of the process that started this one.
peak = next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))
print(json.dumps([use.ru_utime + use.ru_stime + kids.ru_utime + kids.ru_stime, peak * 1024, globals().get("told")]))
"""


def measured(code: str, *args: str) -> tuple[float, int, object]:
    """CPU seconds and peak memory in bytes of a fresh Python that runs `code`, and what it left in `told`."""
    wrapper = f"import sys, resource, json\nsys.dont_write_bytecode = False\n{code}\n{_END}"
    # Bytecode is cached, as installing does, even where the environment says not to.
    command = [sys.executable, "-X", f"pycache_prefix={_BYTECODE.name}", "-c", wrapper, *args]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak, told = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), int(peak), told


def median_seconds(code: str, *args: str, runs: int = RUNS) -> float:
    """Median CPU seconds of `runs` fresh processes."""
    return statistics.median(measured(code, *args)[0] for _ in range(runs))

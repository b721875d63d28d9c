"""What importing loads, seen in a fresh interpreter.

The layer contracts cannot see this: a package's `__init__` may load what its modules do not import.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMPILER_SIDE = ("argosy.compiler", "argosy.passes", "argosy.rewrite", "argosy.frontends", "argosy.targets")
HEAVY = ("onnx", "onnxruntime", "triton", "torch", "ziglang", "PIL")
# The bound of the design: what our own modules may add to importing numpy, ml_dtypes and msgspec.
IMPORT_SECONDS = 0.050

TIMED_IMPORT = """
import ml_dtypes, msgspec, numpy, sys, time
sys.dont_write_bytecode = False
begin = time.process_time()
import {module}
print(time.process_time() - begin)
"""


def python(program: str, *options: str) -> str:
    """Standard output of a program run by a fresh interpreter."""
    done = subprocess.run([sys.executable, *options, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["argosy", "argosy.runtime"])
def test_importing_the_runtime_loads_no_compiler(module: str) -> None:
    loaded = python(f"import sys, {module}; print(*sys.modules)").split()
    unwanted = [
        name for name in loaded if any(name == root or name.startswith(f"{root}.") for root in COMPILER_SIDE + HEAVY)
    ]
    assert not unwanted


@pytest.mark.parametrize("module", ["argosy", "argosy.runtime"])
def test_importing_is_quick(module: str, tmp_path: Path) -> None:
    program, bytecode = TIMED_IMPORT.format(module=module), f"pycache_prefix={tmp_path}"
    python(program, "-X", bytecode)  # compiles, as installing does
    best = min(float(python(program, "-X", bytecode)) for _ in range(5))
    assert best < IMPORT_SECONDS

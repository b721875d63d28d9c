"""What importing loads, seen in a fresh interpreter.

The layer contracts cannot see this: a package's `__init__` may load what its modules do not import.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

COMPILER_SIDE = ("argosy.compiler", "argosy.passes", "argosy.rewrite", "argosy.frontends", "argosy.targets")
HEAVY = ("onnx", "onnxruntime", "triton", "torch", "ziglang", "PIL")


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

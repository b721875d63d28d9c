"""What importing loads, seen in a fresh interpreter.

The layer contracts cannot see this: a package's `__init__` may load what its modules do not import.
"""

from __future__ import annotations

import json
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


def test_compiling_for_one_target_loads_no_other() -> None:
    loaded = python("import sys, argosy.compiler as c; c.resolve_targets(['x86-64-v3']); print(*sys.modules)").split()
    assert "argosy.targets.cpu.target" in loaded
    assert "argosy.targets.gpu.target" not in loaded


def test_a_walk_over_a_registry_meets_every_entry_once() -> None:
    walk = "[name for name, _ in TARGETS.walk()], sorted(name for name, _ in TARGETS.items())"
    walked, known = json.loads(
        python(f"import json; from argosy.targets.base import TARGETS; print(json.dumps([{walk}]))")
    )
    assert walked == known

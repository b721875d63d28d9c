"""Damaged models that are imported all the same, as native code in guarded memory: the interpreter's answer or refusal.

150 models for every change, 12,000 nightly, of which a sixth can be run. `python -m tests.fuzz --native` does the same.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT
from tests.fuzz.worker import run_cases

CHUNK = 150
CHUNKS = 80


@pytest.mark.parametrize("chunk", [0, *(pytest.param(chunk, marks=pytest.mark.nightly) for chunk in range(1, CHUNKS))])
def test_native_code_does_what_the_interpreter_does(chunk: int) -> None:
    summary = run_cases(range(chunk * CHUNK, (chunk + 1) * CHUNK), native=True)
    assert not summary.failures
    kinds = summary.outcomes
    assert kinds["native: the same answer"] > CHUNK / 20
    assert kinds["native: too large"] < CHUNK / 50


ACCESS = """
import ctypes, sys
from tests.fuzz.guarded_memory import guard_memory
choose = guard_memory()
choose({ends})
from argosy.runtime.devices.cpu import LoadedCode
block = LoadedCode.allocate(None, 4096 + 64)
address = block.__array_interface__["data"][0]
assert address % 64 == 0 and block.size == 4160
ctypes.memset(address, 1, 4160)
sys.stdout.write("written"), sys.stdout.flush()
ctypes.memset(address + {offset}, 1, 1)
"""


@pytest.mark.parametrize(("ends", "offset"), [(True, 4160), (False, -1)])
def test_memory_beyond_a_block_is_forbidden(ends: bool, offset: int) -> None:
    """Else the test above would show little."""
    code = ACCESS.format(ends=ends, offset=offset)
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.stdout == "written", child.stderr
    assert child.returncode < 0, "nothing stopped it"


RUN = """
import sys
import numpy as np
import argosy
from argosy.ir.builder import Builder
from argosy.ir.program import Program
from argosy.runtime import body
from tests.fuzz.guarded_memory import guard_memory
guard_memory()(True)
place = body.place
body.place = lambda sizes, *rest: place([size - {missing} for size in sizes], *rest)
build = Builder()
x = build.tensor_parameter("x", "float32", ["N"])
program = Program(build.module([("y", build.pointwise("exp", x))]))
session = argosy.Session(argosy.compile(program, targets=["cpu"]), device="cpu", threads=1)
feed = np.linspace(-1, 1, 2048, dtype=np.float32)
sys.stdout.write("compiled"), sys.stdout.flush()
np.testing.assert_allclose(session.run({{"x": feed}})["y"], np.exp(feed), rtol=1e-6)
"""


@pytest.mark.parametrize("missing", [0, 4096])
def test_buffers_of_an_arena_are_apart(missing: int) -> None:
    """With the sizes that the plan says a run is good; with smaller ones it ends at the first page beyond."""
    code = RUN.format(missing=missing)
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.stdout == "compiled", child.stderr
    assert (child.returncode < 0) if missing else (child.returncode == 0), child.stderr

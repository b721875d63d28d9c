"""What the suite runs on. A new target is a row of RUNNERS; the CPU's levels are there by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import onnx

import argosy
from argosy.emulation.archs import GENERATIONS
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from argosy.targets.cpu.arch import ARCHS

__all__ = ["RUNNERS", "InterpreterRunner", "Run", "Runner", "SessionRunner"]

Run = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Inputs by name to outputs by name, all of them, in the model's order."""


class Runner(Protocol):
    """Makes a model ready. Whatever either step raises fails the case."""

    def prepare(self, model: onnx.ModelProto) -> Run:
        """A function that runs the model."""
        ...


@dataclass(frozen=True, slots=True)
class SessionRunner:
    """The whole way: compile for `target` with at most `jobs` processes, save, open the bytes, run."""

    target: str
    device: str | None = None
    strict: bool = False
    jobs: int | None = None

    def compiled(self, model: onnx.ModelProto) -> bytes:
        """The saved artifact. `strict` refuses host steps."""
        program = argosy.load_onnx(model)
        return argosy.compile(program, targets=(self.target,), strict=self.strict, jobs=self.jobs).to_bytes()

    def prepare(self, model: onnx.ModelProto) -> Run:
        """A session on the saved artifact."""
        return argosy.Session(self.compiled(model), device=self.device, checked=True).run


@dataclass(frozen=True, slots=True)
class InterpreterRunner:
    """The importer and the meaning of the ops alone: no pass, no artifact."""

    def prepare(self, model: onnx.ModelProto) -> Run:
        """The program as imported, evaluated."""
        program = load(model)
        interpreter = Interpreter(program.main)
        names = list(program.outputs)

        def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
            results = interpreter.run([inputs[name] for name in program.inputs], Env())
            # An op may answer with a numpy scalar; the session makes an array of it, as we do here.
            return {
                name: np.asarray(value) if isinstance(value, np.generic) else value
                for name, value in zip(names, results, strict=True)
            }

        return run


RUNNERS: Mapping[str, Runner] = {
    "ref": SessionRunner("ref"),
    "cpu": SessionRunner("cpu", device="cpu", strict=True),
    "cpu-with-host-steps": SessionRunner("cpu"),
    "interpreter": InterpreterRunner(),
    "cuda": SessionRunner("sm_90", device="cuda", strict=True),
    "cuda-with-host-steps": SessionRunner("sm_90", device="cuda"),
    **{f"emulated-{name}": SessionRunner(name, device="emulated", strict=True) for name in GENERATIONS},
    **{f"cpu-{name}": SessionRunner(name, device="cpu", strict=True) for name in ARCHS},
}

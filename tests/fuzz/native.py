"""What becomes of a damaged model as native code: the answer of the interpreter, or a refusal where that refuses.

Its memory is guarded (`tests.fuzz.guarded_memory`): a kernel that reads or writes beyond a buffer ends the process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import argosy
from argosy.comparison import Agree, compare
from argosy.errors import ArgosyError, InternalError
from argosy.ir import Env
from argosy.ir.dtype import Array, DType
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager
from argosy.rewrite.dead_code import remove_dead_code
from tests.fuzz.cases import Case, Outcome, arguments_of
from tests.fuzz.guarded_memory import guard_memory
from tests.fuzz.limits import TooLongError, memory_limit, timer

__all__ = ["NativeRunner"]

_RUN_SECONDS: Final = 0.5
_COMPILE_SECONDS: Final = 20.0
"""Processor time of this process, which leaves compilers to others."""
_SHOWN: Final = 400
"""Characters of a difference that are reported."""


@dataclass(frozen=True, slots=True)
class _Agree(Agree):
    """Like Agree, but what is small as a difference of larger numbers may be off by more: by its share of 0.01."""

    def allowed(self, expected: Array, dtype: DType) -> Array:
        least: Array = Agree.allowed(self, np.full_like(expected, 0.01), dtype)
        return np.maximum(Agree.allowed(self, expected, dtype), least)


class NativeRunner:
    """Runs programs by the interpreter and as native code. Replaces the memory of this process's sessions for good."""

    def __init__(self) -> None:
        self._choose_end = guard_memory()

    def __call__(self, case: Case, program: Program) -> Outcome:
        arguments = arguments_of(program, random.Random(case.number))
        if arguments is None:
            return Outcome("imported")
        try:
            with timer(_RUN_SECONDS), memory_limit():
                results = Interpreter(remove_dead_code(program.main)).run(arguments, Env())
            expected: dict[str, Any] | str = dict(zip(program.outputs, results, strict=True))
        except (MemoryError, TooLongError):
            return Outcome("run: too large or too long")
        except ArgosyError as error:
            if "MemoryError" in error.what:
                return Outcome("run: too large or too long")
            expected = error.what
        self._choose_end(case.number % 2 == 0)
        return self._compared(program, dict(zip(program.inputs, arguments, strict=True)), expected)

    @staticmethod
    def _compared(program: Program, feeds: dict[str, Any], expected: dict[str, Any] | str) -> Outcome:
        """Native code beside the interpreter's results, or its refusal."""
        try:
            with timer(_COMPILE_SECONDS):
                saved = argosy.compile(program, targets=["cpu"], jobs=1).to_bytes()
            with timer(_COMPILE_SECONDS), memory_limit():
                found = argosy.Session(saved, device="cpu", threads=1).run(feeds)
        except MemoryError:
            return Outcome("native: too large")
        except TooLongError:
            return Outcome("failure", "compiling takes too long, or the native run")
        except ArgosyError as error:
            if isinstance(error, InternalError) and "MemoryError" not in error.what:
                return Outcome("failure", f"native: {error}")
            if isinstance(expected, str) or "MemoryError" in error.what:
                return Outcome("native: refused, as by the interpreter")
            return Outcome("failure", f"only native code refuses it: {type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - this is what we look for
            return Outcome("failure", f"native: {type(error).__name__}: {error}")
        if isinstance(expected, str):
            try:  # passes leave out more that nothing needs
                normal = PassManager((NORMALISE,)).run(program.main)
                expected = dict(zip(program.outputs, Interpreter(normal).run(list(feeds.values()), Env()), strict=True))
            except ArgosyError as error:
                return Outcome("failure", f"native code runs what the interpreter refuses: {error}")
        different = compare(expected, found, _Agree())
        if different:
            return Outcome("failure", f"native: {'; '.join(map(str, different))}"[:_SHOWN])
        return Outcome("native: the same answer")

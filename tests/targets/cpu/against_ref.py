"""A program compiled for this CPU without host steps, run beside the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import argosy
from argosy.errors import ArgosyError
from argosy.ir import Env, Module, Program
from argosy.ir.dtype import dtype_of
from argosy.ir.interpreter import Interpreter

__all__ = ["TOLERANCE", "agree", "check", "compiled"]

TOLERANCE: Mapping[str, float] = {
    "float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-10, "complex64": 1e-5, "complex128": 1e-10,
}  # fmt: skip
"""Largest error of a result, against its own size or 1; other element types are compared exactly."""


def compiled(main: Module) -> argosy.Session:
    """A session on native code only: a host step is an error."""
    artifact = argosy.compile(Program(main), targets=("cpu",), strict=True)
    return argosy.Session(artifact, device="cpu")


def check(main: Module, cases: Sequence[tuple[Sequence[Any], Mapping[str, int]]], note: str = "") -> None:
    """Both give the same results for each case: arguments, and symbols that no argument binds.

    What the interpreter refuses, native code must refuse too.
    """
    session = compiled(main)
    for arguments, symbols in cases:
        feeds = dict(zip(main.parameter_names, arguments, strict=True))
        try:
            expected = Interpreter(main).run(list(arguments), Env(dict(symbols)))
        except ArgosyError as refusal:
            try:
                session.run(feeds)
            except ArgosyError:
                continue
            raise AssertionError(f"{note}: native code ran what the interpreter refuses: {refusal}") from None
        found = session.run(feeds)
        for name, value in zip(main.result_names, expected, strict=True):
            agree(found[name], np.asarray(value), f"{note}, result {name}, {dict(symbols)}")


def agree(found: Any, expected: Any, note: str) -> None:
    """The same type and shape, and elements within the tolerance of the type."""
    assert found.dtype == expected.dtype, f"{note}: {found.dtype}, expected {expected.dtype}"
    assert found.shape == expected.shape, f"{note}: {found.shape}, expected {expected.shape}"
    kind = dtype_of(expected.dtype)
    wide = np.complex128 if kind.kind == "complex" else np.float64 if kind.is_float else None
    if wide is None:
        np.testing.assert_array_equal(_whole(found), _whole(expected), note)
        return
    limit = TOLERANCE.get(kind.name, 0.0)
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), limit, limit, err_msg=note)


def _whole(value: Any) -> Any:
    return value.astype(np.int64) if value.dtype.kind == "V" else value

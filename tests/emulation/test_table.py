"""Every instruction that the emulator knows has a test that expects something of it, from a source of its own.

`EXPECTED` of a module here says what operations of the table compute, `NAMES` which accesses to memory it makes; they
are what the module's tests go through, as are the tables of test_matrix.py. test_lanes.py and test_flow.py say the same
of what moves values between lanes, and of where waves go.
"""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import pytest

from argosy.emulation.archs import generation
from argosy.emulation.c_engine.encode import _FACTORS
from argosy.emulation.matrix import MatrixShape, find_matrix
from argosy.emulation.memory_forms import ATOMICS, EXCHANGES, LOCAL_ATOMICS, SIZES, Space, find_memory_form
from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.table import OPERATIONS
from tests import emulation
from tests.emulation.test_matrix import DOUBLES, FORMATS, MFMA, SHORT, WMMA

load_semantics()


def _gathered(table: str) -> set[str]:
    """The keys of a table, of all modules of these tests that have it."""
    modules = [import_module(f"{emulation.__name__}.{each.name}") for each in iter_modules(emulation.__path__)]
    return {name for module in modules for name in getattr(module, table, ())}


def test_every_operation_has_an_expectation() -> None:
    expected = _gathered("EXPECTED")
    assert sorted(OPERATIONS.keys() - expected) == []
    assert sorted(expected - OPERATIONS.keys()) == []


ACCESSES = _gathered("NAMES")


def test_every_space_is_read_and_written() -> None:
    forms = [find_memory_form(name) for name in ACCESSES]
    found = {(form.space, form.store, form.bits) for form in forms if form is not None and not form.atomic}
    assert len(forms) - forms.count(None) == len(ACCESSES)
    for space in get_args(Space):
        sizes = {8, 16, 32, 64, 96, 128} | ({256, 512} if space == "scalar" else set())
        assert {size for where, store, size in found if where == space and not store} == sizes
        assert {size for where, store, size in found if where == space and store} == (
            sizes if space != "scalar" else set()
        )


@pytest.mark.parametrize("word", sorted(SIZES))
def test_every_size_is_tested_by_every_name(word: str) -> None:
    assert any(word in name.split("_") for name in ACCESSES)


def test_every_load_that_transposes_is_tested() -> None:
    assert EXCHANGES.keys() <= ACCESSES


def test_every_atomic_operation_is_tested() -> None:
    for word in ATOMICS:
        for space in ("global", "flat"):
            assert any(re.fullmatch(rf"{space}_atomic_{word}(_[a-z0-9]+)?", name) for name in ACCESSES), (space, word)
    for word in LOCAL_ATOMICS:
        assert any(re.fullmatch(rf"ds_{word}(_rtn)?_[a-z0-9]+", name) for name in ACCESSES), word


def _products() -> list[MatrixShape]:
    plain: list[Any] = [
        find_matrix(f"v_{unit}_{name}", generation(arch))
        for unit, table in (("mfma", MFMA), ("wmma", WMMA))
        for arch, names in table.items()
        for name in names
    ]
    plain += [find_matrix(f"v_mfma_{name}", generation(arch)) for arch, name in DOUBLES.items()]
    short = [
        find_matrix("v_mfma_f32_16x16x128_f8f6f4", generation("gfx950"), (FORMATS.index(a), FORMATS.index(b)))
        for a, b in SHORT
    ]
    assert None not in plain + short
    return [*plain, *short]


def test_every_type_of_factors_is_tested() -> None:
    """In every layout of lanes, each type that an engine multiplies."""
    kinds = {factor.kind for shape in _products() for factor in (shape.a, shape.b)}
    assert kinds == _FACTORS.keys() - {"i32"}
    assert {generation(arch).wmma for arch in WMMA} == {"whole", "half", "runs"}

"""Floats in scalar registers, as kernels have them: results of both engines against what lanes are expected to have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import same, values
from tests.emulation.test_conversions import EXPECTED as CONVERSIONS
from tests.emulation.test_floats import EXPECTED as FLOATS
from tests.emulation.test_transcendental import EXPECTED as TRANSCENDENTAL
from tests.emulation.text import ENGINES, registers_after

EXACT = {name: function for name, function in (FLOATS | CONVERSIONS).items() if name.startswith("s_")}
SCALARS = EXACT | {name: function for name, function in TRANSCENDENTAL.items() if name.startswith("v_s_")}
_SETS = 4


def given(name: str, kind: str, seed: int) -> Any:
    """Some values of a type; such that a root or a logarithm is exact where it may be off by an ulp."""
    return values(kind, seed, _SETS) if name in EXACT else np.array([1, 4, 16, 0.25], TYPES[kind])


def bits(value: Any) -> int:
    """A number's bits, with something above where they are 16."""
    raw = int(np.asarray(value).view(f"u{value.itemsize}"))
    return raw | 0x5A5A0000 if value.itemsize == 2 else raw


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(SCALARS))
def test_scalars(name: str, engine: Any) -> None:
    operation = OPERATIONS[name]
    sources = [given(name, kind, 40 + place + len(name)) for place, kind in enumerate(operation.sources)]
    body = []
    for place in range(_SETS):
        body += [f"s_mov_b32 s{10 + at}, {bits(each[place]):#x}" for at, each in enumerate(sources)]
        texts = [f"s{10 + at}" for at in range(len(sources))]
        if "fmaak" in name:
            texts[2] = f"{bits(sources[2][place]):#x}"
        if operation.results == ("scc",):
            body += [f"{name} {', '.join(texts)}", "s_cselect_b32 s20, 1, 0"]
        elif operation.keeps:
            body += [f"s_mov_b32 s20, {texts[-1]}", f"{name} s20, {', '.join(texts[:-1])}"]
        else:
            body.append(f"{name} s20, {', '.join(texts)}")
        body.append(f"v_mov_b32_e32 v{4 + place}, s20")
    found = registers_after(body, engine, {3: np.zeros(32, np.uint32)}, range(4, 4 + _SETS), arch="gfx1201")[:, 0]
    form = TYPES[operation.results[0]]
    with np.errstate(all="ignore"):
        expected = np.asarray(SCALARS[name](*sources)).astype(form)
    same(found.astype(f"u{form.itemsize}").view(form), expected)
    if form.itemsize == 2:  # "SALU Floating Point" of the RDNA4 document
        assert not (found >> 16).any()

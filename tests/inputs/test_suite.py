"""Inputs are generated for the models of ONNX's own node tests: each model takes them, and gives numbers.

Only models of which an input must be something are looked at: all others take any number.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import argosy
from argosy.errors import ArgosyError
from argosy.inputs import InputRequest, make_inputs
from argosy.inputs.ranges import find_ranges
from argosy.verification.reference import RefReference
from tests.conformance.cases import load_cases

REFUSED: Final = (
    "affine_grid",  # the sizes of an image, of which one must be the batch of another input
    "col2im_pads",  # blocks are chosen without pads and strides
    "col2im_strides",
)
ENDLESS: Final = (
    "adagrad",  # a root of what gradients add up to
    "adam",
)


def test_models_take_what_is_generated_for_them() -> None:
    refused: dict[str, str] = {}
    endless: list[str] = []
    met = 0
    for case in load_cases(("node",)):
        try:
            program = argosy.load_onnx(case.read()[0])
        except ArgosyError:  # a model that is wrong on purpose
            continue
        if "_expanded" in case.name or not find_ranges(program.main, {}):
            continue
        met += 1
        name = case.name.removeprefix("test_")
        try:
            made = make_inputs(program.inputs, InputRequest(), program=lambda program=program: program)  # type: ignore[misc]
            found = RefReference(program).answer(made.values, 0)
        except ArgosyError as error:
            refused[name] = str(error)
            continue
        endless += [name] if any(not finite(value) for value in found.values()) else []
    assert {name: why for name, why in refused.items() if not name.startswith(REFUSED)} == {}
    assert [name for name in endless if not name.startswith(ENDLESS)] == []
    assert met > 250


def finite(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or value.dtype.kind != "f" or bool(np.isfinite(value).all())

"""Results in words on the terminal: elements of every type."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from argosy.cli.values import describe_value, short_value
from argosy.ir.dtype import DTYPES


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "string"])
def test_numbers_of_every_type_are_shown(name: str) -> None:
    value = np.asarray([1, 1]).astype(DTYPES[name].numpy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = short_value(value).split()
    number = complex if DTYPES[name].kind == "complex" else float
    if name != "bool":
        assert [number(first), number(second)] == value.astype(complex).tolist()
    assert describe_value(value) == f"{name}[2]"


def test_both_parts_of_complex_numbers_are_shown() -> None:
    assert short_value(np.asarray([1.5 - 2j], np.complex64)) == "1.5-2j"

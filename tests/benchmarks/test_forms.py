"""What measured ops are compared with is what ref computes for their models, so that a wrong figure can't pass."""

from __future__ import annotations

import numpy as np
import pytest

import argosy
from benchmarks.gpu.forms import FORMS, Form, error_of


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_expected_results_are_those_of_ref(form: Form) -> None:
    arrays = form.inputs()
    given = {name: array for name, array in arrays.items() if name not in form.constants}
    found = list(argosy.Session(argosy.compile(form.model(), targets=("ref",)), device="ref").run(given).values())
    assert error_of(form.expected(arrays), found) < 1e-4


def test_errors_are_seen() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert error_of([x], [x]) == 0
    assert error_of([x], [x + np.array([0, 1], np.float32)]) == 0.5
    assert error_of([x], [x[:1]]) == float("inf")
    assert error_of([np.array([1, 2])], [np.array([2, 1])]) == float("inf")
    assert error_of([x], [x + np.float32("nan")]) == float("inf")

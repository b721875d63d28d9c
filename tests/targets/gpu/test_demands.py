"""Sizes that only the run knows and that do not fit each other: the host refuses them before any kernel reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import UsageError
from argosy.ir import Env, Program
from argosy.ir.interpreter import Interpreter
from argosy.options import CompileOptions
from tests.targets.cpu.test_demands import CASES, floats, program

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run


@pytest.mark.parametrize("case", CASES)
def test_sizes_that_do_not_fit_are_refused(case: str) -> None:
    kinds, build, good, bad = CASES[case]
    module = program(kinds, build)
    run = interpreted_run(Program(module), options=CompileOptions())

    def feeds(shapes: Any) -> dict[str, Any]:
        return {f"x{index}": floats(*shape) for index, shape in enumerate(shapes)}

    for shapes in good:
        given = feeds(shapes)
        (expected,) = Interpreter(module).run(list(given.values()), Env())
        np.testing.assert_allclose(run(given)["y"], expected, rtol=1e-4, atol=1e-5)
    for shapes in bad:
        with pytest.raises(UsageError, match="node") as caught:
            run(feeds(shapes))
        assert caught.value.hint.startswith("it read ")

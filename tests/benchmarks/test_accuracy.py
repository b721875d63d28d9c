"""The table of errors: the documents show the results, and a figure is what numpy finds by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import argosy
from argosy.inputs import generate
from argosy.ir.dtype import FLOAT32
from argosy.ir.types import TensorType
from benchmarks.accuracy import __main__ as command
from benchmarks.accuracy.cases import CASES, ELEMENTS
from benchmarks.accuracy.measured import Figure, Results
from benchmarks.accuracy.table import PAGE, tables, updated


def test_the_page_shows_the_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == updated(text, command.RESULTS), "run python -m benchmarks.accuracy table"
    assert len(list(command.RESULTS.glob("accuracy-*.json"))) >= 2


@pytest.mark.parametrize("path", sorted(command.RESULTS.glob("accuracy-*.json")), ids=lambda path: path.stem)
def test_results_hold_every_family_and_are_what_the_types_allow(path: Path) -> None:
    found = msgspec.json.decode(path.read_bytes(), type=Results)
    measured = {(figure.family, figure.element) for figure in found.figures}
    assert measured == {(case.family, element) for case in CASES for element in case.elements}
    assert len({figure.family for figure in found.figures}) >= 30
    shares = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2, "float64": 1e-12}
    for figure in found.figures:
        assert figure.reason or figure.share <= shares[figure.element], figure


def test_families_have_names_of_their_own() -> None:
    assert len({case.family for case in CASES}) == len(CASES)
    assert all(set(case.elements) <= set(ELEMENTS) for case in CASES)


def test_a_figure_is_what_numpy_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`exp` in float32, packed and run as on another machine; and the same by hand."""
    assert command.main(["pack", str(tmp_path / "pack"), "--arch", "cpu", "--only", "exp"]) == 0
    assert command.main(["run", str(tmp_path / "pack"), "-o", str(tmp_path / "found.json")]) == 0
    found = msgspec.json.decode((tmp_path / "found.json").read_bytes(), type=Results)
    (figure,) = (each for each in found.figures if (each.family, each.element) == ("exp", "float32"))
    case = next(case for case in CASES if case.family == "exp")
    session = argosy.Session(argosy.compile(case.model("float32"), targets=["cpu"]), device="cpu")
    ulp = share = 0.0
    for seed in range(3):
        x = generate("x", TensorType(FLOAT32, (4096,)), (4096,), seed=seed, bounds=case.ranges["x"])
        truth = np.exp(x.astype(np.float64))
        error = np.abs(session.run({"x": x})["y"] - truth)
        ulp = max(ulp, float((error / np.spacing(truth.astype(np.float32))).max()))
        share = max(share, float(error.max() / truth.max()))
    assert figure.share == pytest.approx(share)
    assert figure.ulp == pytest.approx(ulp, rel=0.01), "spacing at the true value, and at the nearest float32"
    assert "exp" in capsys.readouterr().out


def test_tables_round_up(tmp_path: Path) -> None:
    figures = [Figure("a", "float32", 0.501, 1.01e-7), Figure("a", "float16", reason="no such code")]
    results = Results("cpu", "some", {"numpy": "1"}, figures)
    (tmp_path / "accuracy-some.json").write_bytes(msgspec.json.encode(results))
    told = tables(tmp_path).splitlines()
    assert "| a | 0.51 · 1.1e-7 | – | – | – |" in told
    assert "No code: a in float16 (no such code)." in told

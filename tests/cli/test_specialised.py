"""`--dim N=1,8` on the command line: what is listed, what runs, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.cli import models
from tests.cli.conftest import Call


def test_sizes_get_variants_that_are_listed_and_run(call: Call, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "sizes.argosy"
    assert call("compile", model, "--arch", "cpu", "--dim", "N=1,8", "-o", output, "--quiet").code == 0
    listed = call("list", output).out
    assert "N=1" in listed
    assert "N=8" in listed
    assert "any size" in listed
    for rows in (1, 8, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        np.save(tmp_path / "x.npy", x)
        results = tmp_path / "y.npz"
        answer = call("run", output, "--input", f"x={tmp_path / 'x.npy'}", "-o", results, "--why")
        assert answer.code == 0
        assert "for runs with N = 8" in answer.out + answer.err
        np.testing.assert_allclose(np.load(results)["y"], models.classify(x), rtol=1e-5, atol=1e-7)


def test_each_size_is_verified(call: Call, model: Path) -> None:
    answer = call("verify", model, "--arch", "cpu", "--dim", "N=1,8", "--json")
    assert answer.code == 0
    told = json.dumps(json.loads(answer.out))
    assert "float32[1, 4]" in told
    assert "float32[8, 4]" in told


def test_where_no_code_is_made_sizes_get_none(call: Call, model: Path, tmp_path: Path) -> None:
    words = ("compile", model, "--arch", "ref", "--dim", "N=1,8", "-o", tmp_path / "ref.argosy")
    answer = call(*words)
    assert answer.code == 0
    assert "none for single sizes of N" in answer.err
    assert call(*words, "--strict").code == 2


def test_a_name_that_is_no_dim_is_refused(call: Call, model: Path, tmp_path: Path) -> None:
    answer = call("compile", model, "--arch", "cpu", "--dim", "K=1,8", "-o", tmp_path / "none.argosy")
    assert answer.code == 2
    assert "no dim called 'K'" in answer.err
    assert not (tmp_path / "none.argosy").exists()

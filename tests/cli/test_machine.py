"""`doctor`, `arches` and `ops`."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
from onnx import defs

from tests.cli import models
from tests.cli.conftest import Call


def test_doctor_tells_what_there_is(call: Call, artifact: Path) -> None:
    told = json.loads(call("doctor", artifact, "--json").out)
    assert platform.python_version() in told["python"]["python"]
    assert told["packages"]["numpy"].startswith(np.__version__)
    assert set(told["drivers"]) == {"NVIDIA", "AMD"}
    assert told["cpu"]["cores"]
    assert "numpy runs everywhere" in told["artifact"]["ref"]
    text = call("doctor").out
    assert all(title in text for title in ("python", "packages", "drivers", "cpu"))


def test_arches_lists_and_resolves(call: Call, model: Path, tmp_path: Path) -> None:
    listed = json.loads(call("arches", "--json").out)
    assert "ref" in [row["name"] for row in listed]
    assert all(row["tier"] for row in listed)
    assert [row["name"] for row in json.loads(call("arches", "ref", "--json").out)] == ["ref"]
    assert call("arches", "gfx000").code == 2
    assert json.loads(call("arches", "ref", "--model", model, "--json").out)[0]["model"] == "compiles"
    assert call("arches", "--model", models.unknown_ops(tmp_path / "u.onnx")).code == 3


def test_ops_lists_all_of_onnx(call: Call) -> None:
    told = json.loads(call("ops", "--json").out)
    names = {(row["domain"], row["name"]) for row in told["onnx"]}
    assert {(schema.domain, schema.name) for schema in defs.get_all_schemas()} <= names
    relu = next(row for row in told["onnx"] if row["name"] == "Relu" and not row["domain"])
    assert relu["handlers"]
    assert relu["schemas"] == [1, 6, 13, 14]
    assert {"dot", "pointwise", "conv"} <= set(told["ir"])


def test_ops_by_name(call: Call) -> None:
    lines = call("ops", "Conv", "com.microsoft::Gelu").out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["Conv", "Gelu"]
    assert call("ops", "--target", "ref").code == 0

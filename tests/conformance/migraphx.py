"""Models of MIGraphX's test suite with inputs and expected outputs, where the data lie beside the repository.

The folder is `../shared/conformance/migraphx`, or what ARGOSY_MIGRAPHX_DATA names; its README says where
everything comes from. What counts:

- `verify`, `ort`, `reference`: all outputs are there, and those with an expected value are within its tolerance;
- `negative`: the model is refused as invalid when it is compiled, or when it is run where that is where the
  fault shows. A refusal because an op is unsupported does not count;
- `parse-only`: the model compiles. Nothing is expected of its values.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from argosy.comparison import Rule, compare
from argosy.errors import ArgosyError, InternalError, ModelError, UnsupportedError
from argosy.ir.dtype import Array, DType
from tests.architecture.sources import ROOT
from tests.conformance.judge import Outcome, explain
from tests.conformance.runners import Run, Runner

__all__ = ["Entry", "Within", "folder", "judge_entry", "load_entries"]

# Element types that numpy's files cannot hold, stored as the raw bits of one element each.
_RAW = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
_NARROW = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4}


@dataclass(frozen=True, slots=True)
class Within:
    """The tolerance that the data suggest for one output; for integers its absolute part counts."""

    rtol: float
    atol: float

    def allowed(self, expected: Array, dtype: DType) -> Array:
        """`atol` and a share of each element."""
        return np.asarray(self.atol + self.rtol * np.abs(expected))

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        """0 or 1."""
        return int(self.atol)


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the index."""

    name: str
    category: str
    family: str
    file: Path
    record: Mapping[str, Any]

    @property
    def id(self) -> str:
        """`category/name`, unique in the index."""
        return f"{self.category}/{self.name}"


def folder() -> Path:
    """Where the data should lie."""
    given = os.environ.get("ARGOSY_MIGRAPHX_DATA")  # noqa: TID251 - a place of test data, no option of ours
    return Path(given) if given else ROOT.parent / "shared" / "conformance" / "migraphx"


@cache
def load_entries() -> tuple[Entry, ...]:
    """The models of the index, by category and name; raises FileNotFoundError where the data are absent."""
    root = folder()
    index = json.loads((root / "index.json").read_text(encoding="utf-8"))
    entries = [
        Entry(record["name"], record["category"], record["family"], root / record["file"], record)
        for record in index["entries"]
    ]
    return tuple(sorted(entries, key=lambda entry: entry.id))


def judge_entry(entry: Entry, runner: Runner) -> Outcome:
    """Do with a model what its category asks for."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason = _refusal(entry, runner) if entry.category == "negative" else _values(entry, runner)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - as in judge
        reason = explain(error)
    return Outcome(entry.id, reason, time.perf_counter() - start)


def _values(entry: Entry, runner: Runner) -> str:
    model = onnx.load(entry.file)
    run = runner.prepare(model)
    names = [output.name for output in model.graph.output]
    for case in entry.record["cases"]:
        with np.load(entry.file.parents[1] / case["file"]) as data:
            inputs = {item["name"]: _decode(data[f"in:{item['name']}"], item["dtype"]) for item in case["inputs"]}
            found = run(inputs)
            if list(found) != names:
                return f"the outputs are {list(found)}, expected {names}"
            for item in case["outputs"]:
                expected = _decode(data[f"out:{item['index']}"], item["dtype"])
                name, rule = names[item["index"]], Within(**item["tolerance"])
                reason = _difference(name, expected, found[name], rule)
                if reason:
                    return reason
    return ""


def _difference(name: str, expected: Any, found: Any, rule: Rule) -> str:
    return "; ".join(map(str, compare({name: expected}, {name: found}, rule)))


def _refusal(entry: Entry, runner: Runner) -> str:
    """Why an invalid model was not refused properly; empty where it was."""
    model = onnx.load(entry.file)
    try:
        run = runner.prepare(model)
        if entry.record["negative"]["stage"] == "run":
            _run_on_ones(run, model)
    except UnsupportedError:
        raise
    except InternalError:
        raise
    except ModelError:
        return ""
    except ArgosyError:
        if entry.record["negative"]["stage"] == "run":
            return ""
        raise
    return f"accepted, though invalid: {entry.record['negative']['message']}"


def _run_on_ones(run: Run, model: onnx.ModelProto) -> None:
    """Run on tensors of ones, with 1 for every dim that is not given."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for entry in model.graph.input:
        if entry.name not in constants:
            tensor = entry.type.tensor_type
            shape = [dim.dim_value or 1 for dim in tensor.shape.dim]
            inputs[entry.name] = np.ones(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    run(inputs)


def _decode(stored: Array, dtype: str) -> Array:
    """An array of the file in its own element type."""
    if dtype in _RAW:
        return stored.view(_RAW[dtype])
    return stored.astype(_NARROW[dtype]) if dtype in _NARROW else stored

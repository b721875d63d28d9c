"""Models of MIGraphX's test suite with inputs and expected outputs, where the data lie beside the repository.

The folder is `../shared/conformance/migraphx`, or what ARGOSY_MIGRAPHX_DATA names; its README says where
everything comes from. What counts:

- `verify`, `ort`, `reference`: all outputs are there, and those with an expected value are within its tolerance.
  MIGraphX knows no scalars: where the data for an input without axes are a vector of one element, the input is
  declared so, as ONNX Runtime takes it when it computes the expected values;
- `negative`: the model is refused as invalid when it is compiled, by an error that names the node. A refusal
  because an op is unsupported does not count, unless there is no such op;
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
import onnxruntime

from argosy.comparison import Rule, compare
from argosy.errors import InternalError, ModelError, UnsupportedError
from argosy.frontends.onnx.node import node_label
from argosy.ir.dtype import Array, DType
from tests.architecture.sources import ROOT
from tests.conformance.judge import Outcome, explain
from tests.conformance.migraphx_verdicts import NO_SUCH_OP, RECOMPUTED
from tests.conformance.runners import Runner

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
    _declare_vectors(model, entry)
    run = runner.prepare(model)
    names = [output.name for output in model.graph.output]
    for case in entry.record["cases"]:
        with np.load(entry.file.parents[1] / case["file"]) as data:
            inputs = {item["name"]: _decode(data[f"in:{item['name']}"], item["dtype"]) for item in case["inputs"]}
            found = run(inputs)
            if list(found) != names:
                return f"the outputs are {list(found)}, expected {names}"
            recomputed = _recompute(model, inputs) if entry.id in RECOMPUTED else {}
            for item in case["outputs"]:
                name, rule = names[item["index"]], Within(**item["tolerance"])
                expected = _decode(data[f"out:{item['index']}"], item["dtype"])
                if name in recomputed:
                    expected = recomputed[name]
                    # Sums of float32 are exact to the size of their terms; the data's tolerance is for small ones.
                    rule = Within(rule.rtol, rule.atol + 1e-6 * float(np.abs(expected).max()))
                reason = _difference(name, expected, found[name], rule)
                if reason:
                    return reason
    return ""


def _declare_vectors(model: onnx.ModelProto, entry: Entry) -> None:
    """Give inputs without axes the one that their data have."""
    vectors = {item["name"] for case in entry.record["cases"] for item in case["inputs"] if item["shape"] == [1]}
    for value in model.graph.input:
        kind = value.type.tensor_type
        if value.name in vectors and kind.HasField("shape") and not kind.shape.dim:
            kind.shape.dim.add(dim_value=1)


def _recompute(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What ONNX Runtime gives for the model without the attribute `clip`, which is 0 and clips nothing."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for node in changed.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "clip"]
        del node.attribute[:]
        node.attribute.extend(kept)
    session = onnxruntime.InferenceSession(changed.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in model.graph.output), session.run(None, dict(inputs)), strict=True))


def _difference(name: str, expected: Any, found: Any, rule: Rule) -> str:
    return "; ".join(map(str, compare({name: expected}, {name: found}, rule)))


def _refusal(entry: Entry, runner: Runner) -> str:
    """Why an invalid model was not refused properly; empty where it was."""
    model = onnx.load(entry.file)
    try:
        runner.prepare(model)
    except InternalError:
        raise
    except ModelError as error:
        if isinstance(error, UnsupportedError) and entry.id not in NO_SUCH_OP:
            raise
        labels = [node_label(node, index) for index, node in enumerate(model.graph.node)]
        return "" if any(label in str(error) for label in labels) else f"the error names no node: {error}"
    return f"accepted, though invalid: {entry.record['negative']['message']}"


def _decode(stored: Array, dtype: str) -> Array:
    """An array of the file in its own element type."""
    if dtype in _RAW:
        return stored.view(_RAW[dtype])
    return stored.astype(_NARROW[dtype]) if dtype in _NARROW else stored

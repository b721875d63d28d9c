"""MIGraphX's models where the data are: what passed on ref when the list was recorded still passes.

All of it with expected values passes as native code too; a sample of it is tried here.
"""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.conformance import baseline, migraphx
from tests.conformance.judge import Outcome
from tests.conformance.migraphx_verdicts import VERDICTS
from tests.conformance.runners import RUNNERS, Run
from tests.conformance.suites import SUITES

RECORDED = baseline.read(SUITES["migraphx"].baseline("ref"))
VALUED = [name for name in RECORDED if name.startswith(("ort/", "reference/", "verify/"))]
NATIVE = random.Random(5).sample(VALUED, 40)


@pytest.fixture(scope="module")
def entries() -> dict[str, migraphx.Entry]:
    """The models by id."""
    if not migraphx.folder().is_dir():
        pytest.skip(f"no folder {migraphx.folder().name}; ARGOSY_MIGRAPHX_DATA names another")
    return {entry.id: entry for entry in migraphx.load_entries()}


@pytest.mark.parametrize("name", RECORDED)
def test_what_passed_still_passes(name: str, entries: dict[str, migraphx.Entry]) -> None:
    assert migraphx.judge_entry(entries[name], RUNNERS["ref"]).reason == ""


@pytest.mark.parametrize("name", NATIVE)
def test_what_passed_passes_as_native_code(name: str, entries: dict[str, migraphx.Entry]) -> None:
    assert migraphx.judge_entry(entries[name], RUNNERS["cpu-with-host-steps"]).reason == ""


def test_enough_of_them_agree_and_the_rest_is_explained(entries: dict[str, migraphx.Entry]) -> None:
    valued = {name for name, entry in entries.items() if entry.record["cases"]}
    assert valued - set(RECORDED) == set(VERDICTS)
    assert len(valued & set(RECORDED)) >= 0.97 * len(valued)
    assert {name for name, entry in entries.items() if entry.category == "negative"} <= set(RECORDED)


class Stub:
    """Takes every model; its outputs are what it is told."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = outputs

    def prepare(self, model: Any) -> Run:
        return lambda _inputs: self.outputs


def judged(entry: migraphx.Entry, outputs: Any) -> Outcome:
    return migraphx.judge_entry(entry, Stub(outputs))


def test_stubs_fail(entries: dict[str, migraphx.Entry]) -> None:
    value = entries["verify/celu_verify_test"]
    names = [output["name"] for output in value.record["outputs"]]
    for outputs in ({}, {"other": np.zeros(1)}, {name: np.zeros(1) for name in names}, dict.fromkeys(names)):
        assert not judged(value, outputs).passed
    negative = next(entry for entry in entries.values() if entry.category == "negative")
    assert "accepted, though invalid" in judged(negative, {}).reason


def test_short_types_are_decoded() -> None:
    bits = np.array([0x3F80, 0xC000], np.uint16)
    np.testing.assert_array_equal(migraphx._decode(bits, "bfloat16"), np.array([1, -2], ml_dtypes.bfloat16))
    assert migraphx._decode(np.array([-8, 7], np.int8), "int4").dtype == ml_dtypes.int4
    assert migraphx._decode(bits, "uint16") is bits

"""The suites that `python -m tests.conformance` knows: their cases, how one is judged, and how they are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.architecture.sources import ROOT
from tests.conformance import migraphx, migraphx_verdicts
from tests.conformance.cases import load_cases
from tests.conformance.families import family
from tests.conformance.judge import Outcome, judge
from tests.conformance.runners import Runner

__all__ = ["SUITES", "Suite"]


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of cases. `group` is the first thing by which they are counted, `family` (or None) the second.

    `about` stands at the head of the suite's page, `remarks` at its end.
    """

    load: Callable[[], Sequence[Any]]
    judge: Callable[[Any, Runner], Outcome]
    group: Callable[[Any], str]
    family: Callable[[Any], str | None]
    page: Path
    title: str
    about: str
    suffix: str
    remarks: str = ""

    def baseline(self, target: str) -> str:
        """The name of the recorded list for a target."""
        return target + self.suffix


SUITES: Mapping[str, Suite] = {
    "onnx": Suite(
        load_cases,
        judge,
        lambda case: str(case.kind),
        lambda case: family(case) if case.kind == "node" else None,
        ROOT / "docs" / "conformance.md",
        "Conformance",
        """\
ONNX ships a suite of models with inputs and expected outputs. Every case runs the whole way: import, compile,
save, load from the saved bytes, run. A case passes when every output of every data set is there under its
name, in the model's order, with exactly the declared element type and shape, with non-finite values in the
same places, with integers equal and floats within the suite's own tolerances. Anything else is a failure:
an exception of any kind, the suite's "not supposed to implement it" among them, or more than the time limit.
""",
        "",
    ),
    "migraphx": Suite(
        migraphx.load_entries,
        migraphx.judge_entry,
        lambda entry: str(entry.category),
        lambda entry: str(entry.family),
        ROOT / "docs" / "conformance-migraphx.md",
        "MIGraphX's models",
        """\
Small models of [MIGraphX's test suite](https://github.com/ROCm/AMDMIGraphX/tree/develop/test/onnx) (MIT licence),
run the whole way. `verify` models have the expected values of that suite, `ort` and `reference` models those of
ONNX Runtime and of ONNX's reference evaluator. A `negative` model is invalid and must be refused as such, by an error
that names the node; "unsupported" does not count. A `parse-only` model must compile, though some of them are as
invalid. Many of the files are not strictly valid ONNX, and some of the ops were never standard. The data lie beside
the repository; without them this suite is left out.
""",
        "-migraphx",
        migraphx_verdicts.remarks(),
    ),
}

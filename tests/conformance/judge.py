"""The verdict on one case. Nothing but right outputs passes, and no exception excuses.

ONNX's own runner takes `BackendIsNotSupposedToImplementIt` (a skip) for a pass, so a backend that implements
nothing passes everything there; and it compares by position, as many outputs as the backend cares to return.
"""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass

from argosy.comparison import AllClose, compare
from tests.conformance.cases import Case
from tests.conformance.runners import Runner

__all__ = ["Outcome", "explain", "judge", "shorten"]

_REPRODUCER = re.compile(r"\s+reproducer: \S+")
_OP = re.compile(r"([\w.]+::\w+), opset \d+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case; `reason` is empty where it passed."""

    id: str
    reason: str
    seconds: float

    @property
    def passed(self) -> bool:
        """True where every output of every data set was right."""
        return not self.reason


def judge(case: Case, runner: Runner) -> Outcome:
    """Run all data sets of a case and compare every output."""
    start = time.perf_counter()
    reason = _reason(case, runner)
    return Outcome(case.id, reason, time.perf_counter() - start)


def _reason(case: Case, runner: Runner) -> str:
    model, sets = case.read()
    if not sets or not all(data.outputs for data in sets):
        return "the suite expects nothing of this case"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = runner.prepare(model)
            for data in sets:
                mismatches = compare(data.outputs, run(data.inputs), AllClose(case.rtol, case.atol))
                if mismatches:
                    return "; ".join(map(str, mismatches))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a skip, an exit and a crash are all failures here
        return explain(error)
    return ""


def explain(error: BaseException) -> str:
    """An exception as the reason of a failure."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def shorten(reason: str, limit: int = 240) -> str:
    """A reason in one line of at most `limit` characters; of unsupported nodes, the ops."""
    if reason.startswith("UnsupportedError") and (ops := _OP.findall(reason)):
        reason = f"unsupported: {', '.join(sorted(set(ops)))}"
    line = re.sub(r"\s+", " ", _REPRODUCER.sub("", reason)).strip()  # a place on this machine says nothing of the case
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

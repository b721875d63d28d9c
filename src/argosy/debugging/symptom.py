"""What is looked for: outputs that disagree with ref's, or the kind of error that a run ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.verification.tolerance import Tolerance

__all__ = ["Outputs", "Symptom", "symptom_of"]

Outputs = Mapping[str, Any]

_NUMBERS: Final = "wrong numbers"


@dataclass(frozen=True, slots=True)
class Symptom:
    """`kind` is `wrong numbers` or the class of an error, empty where all is right; `error` are that one's words."""

    kind: str
    tolerance: Tolerance
    error: str = ""

    @property
    def is_numbers(self) -> bool:
        """Whether the numbers are wrong, not the run."""
        return self.kind == _NUMBERS

    def shows(self, run: Callable[[], Outputs], expected: Outputs) -> bool:
        """Whether a run has the same symptom."""
        return symptom_of(run, expected, self.tolerance).kind == self.kind

    def is_gone(self, run: Callable[[], Outputs], expected: Outputs) -> bool:
        """Whether a run is right."""
        return not symptom_of(run, expected, self.tolerance).kind


def symptom_of(run: Callable[[], Outputs], expected: Outputs, tolerance: Tolerance) -> Symptom:
    """What is wrong with a run whose outputs should be `expected`."""
    try:
        found = run()
    except ArgosyError as error:
        return Symptom(type(error).__name__, tolerance, str(error))
    return Symptom(_NUMBERS if tolerance.compare(expected, found) else "", tolerance)

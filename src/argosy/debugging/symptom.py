"""What is looked for: outputs that disagree with ref's, or an error that a run ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.errors import ArgosyError, EnvironmentError_
from argosy.verification.cutting import Cut
from argosy.verification.tolerance import Tolerance

__all__ = ["Outputs", "Symptom", "symptom_of"]

Outputs = Mapping[str, Any]

_NUMBERS: Final = "wrong numbers"


@dataclass(frozen=True, slots=True)
class Symptom:
    """`kind` is `wrong numbers` or the class of an error, empty where all is right; `error` are that one's words.

    A part of what is wrong is wrong where it isn't right, in whatever way: a fault may give wrong numbers in the whole
    and an error in a part of it. With `same` it must be the same kind.
    """

    kind: str
    tolerance: Tolerance
    error: str = ""
    same: bool = False

    @property
    def is_numbers(self) -> bool:
        """Whether the numbers are wrong, not the run."""
        return self.kind == _NUMBERS

    @property
    def alone(self) -> Symptom:
        """The symptom, where no other counts."""
        return replace(self, same=True)

    def shows(self, run: Callable[[], Outputs], part: Cut) -> bool:
        """Whether a run of a part is wrong."""
        kind = symptom_of(run, part, self.tolerance).kind
        return kind == self.kind if self.same else bool(kind)

    def is_gone(self, run: Callable[[], Outputs], part: Cut) -> bool:
        """Whether a run of a part is right."""
        return not symptom_of(run, part, self.tolerance).kind


def symptom_of(run: Callable[[], Outputs], part: Cut, tolerance: Tolerance) -> Symptom:
    """What is wrong with a run of a part. Raises where it is the machine that fails."""
    try:
        found = run()
    except EnvironmentError_:
        raise
    except ArgosyError as error:
        return Symptom(type(error).__name__, tolerance, str(error))
    return Symptom(_NUMBERS if tolerance.compare(part.expected, found, part.exact) else "", tolerance)

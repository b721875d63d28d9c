"""What a check of a kernel's text found."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.emulation.assembly import Statement

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, at an instruction of a kernel."""

    kernel: str
    statement: Statement
    what: str

    @property
    def where(self) -> str:
        """The kernel, the line and the instruction."""
        return f"{self.kernel}, line {self.statement.line}: {self.statement.text}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"

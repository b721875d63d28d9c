"""Every error that Argosy raises on purpose.

```
ArgosyError
├── UsageError          2   the call or command line is wrong
├── ModelError          3   the model is invalid or holds something that we do not know
│   ├── BranchError         a branch of a conditional contradicts the sizes; perhaps it is never taken
│   └── UnsupportedError    everything unsupported in a model, listed at once
├── CompileError        4   a valid model could not be compiled
├── ArtifactError       5   the artifact is damaged, foreign or does not fit its peer
├── DeviceError         6   no such device, or no variant fits this machine
├── EnvironmentError_   7   a missing extra, a full disk
│   └── MissingExtraError
└── InternalError      70   a defect of ours
```

The number is the exit code of the command line. An error says *where* it happened, *what* is wrong
and *what to do* about it; the three are kept apart so that every reader can lay them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

__all__ = [
    "ArgosyError",
    "ArtifactError",
    "BranchError",
    "CompileError",
    "DeviceError",
    "EnvironmentError_",
    "InternalError",
    "MissingExtraError",
    "ModelError",
    "UnsupportedError",
    "UsageError",
]


class ArgosyError(Exception):
    """Base of all errors that Argosy raises on purpose.

    `what` is one sentence; `where` names the node, file or argument; `hint` says what to do. `evidence` gives files, by
    name, that a reproducer takes along; `stage` is the part of the compiler that has them.
    """

    exit_code: ClassVar[int] = 70
    stage: str = ""
    evidence: Callable[[], Mapping[str, bytes]] = dict

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text

    def at(self, where: str) -> ArgosyError:
        """The same error, told from further outside: `where` is put before the place it names."""
        self.where = f"{where}: {self.where}" if self.where else where
        self.args = (self.what, self.where, self.hint)
        return self

    def advise(self, hint: str) -> ArgosyError:
        """The same error with `hint`, where it has none of its own."""
        self.hint = self.hint or hint
        self.args = (self.what, self.where, self.hint)
        return self

    def attach(self, stage: str, evidence: Callable[[], Mapping[str, bytes]]) -> ArgosyError:
        """The same error with what shows the failure of one part of the compiler; the first to tell counts."""
        if not self.stage:
            self.stage, self.evidence = stage, evidence
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def _rebuild(kind: type[ArgosyError], what: str, where: str, hint: str) -> ArgosyError:
    """Unpickle an error whatever its own constructor takes."""
    error = kind.__new__(kind)
    ArgosyError.__init__(error, what, where=where, hint=hint)
    return error


class UsageError(ArgosyError):
    """The call or the command line is wrong."""

    exit_code = 2


class ModelError(ArgosyError):
    """The model is invalid, or holds something that Argosy does not know."""

    exit_code = 3


class BranchError(ModelError):
    """A branch of a conditional contradicts the sizes. Where these were asked for, it may be that it is never taken."""


class UnsupportedError(ModelError):
    """Everything in a model that Argosy does not support, listed at once.

    `items` holds a line for each unsupported node.
    """

    def __init__(self, what: str, items: tuple[str, ...], *, where: str = "", hint: str = "") -> None:
        super().__init__("\n".join((what, *(f"  - {item}" for item in items))), where=where, hint=hint)
        self.items = items


class CompileError(ArgosyError):
    """A valid model could not be compiled."""

    exit_code = 4


class ArtifactError(ArgosyError):
    """An artifact is damaged, foreign, or does not fit the one beside it."""

    exit_code = 5


class DeviceError(ArgosyError):
    """There is no such device, or no variant fits this machine."""

    exit_code = 6


class EnvironmentError_(ArgosyError):  # noqa: N801, N818 - the plain name is a builtin
    """The machine lacks something: a package, disk space, a permission."""

    exit_code = 7


class MissingExtraError(EnvironmentError_):
    """A package of an optional extra is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            hint=f"install it with: pip install 'argosy[{extra}]'",
        )


class InternalError(ArgosyError):
    """A defect of ours: please report it with the reproducer that the message names."""

    exit_code = 70

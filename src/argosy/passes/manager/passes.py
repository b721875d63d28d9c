"""What a pass is, and how passes are named and found.

A pass is a frozen dataclass in `argosy/passes/<verb_noun>.py`, registered under the file's name; its
fields are its options. It takes a module and returns one: the same object means "nothing changed".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from argosy.errors import InternalError, UsageError
from argosy.ir.builder import Namer
from argosy.ir.module import Module
from argosy.registry import Registry, did_you_mean
from argosy.rewrite.rebuild import namer_of
from argosy.rewrite.trace import Trace

__all__ = ["Pass", "PassContext", "Phase", "make_pass", "pass_names", "register_pass"]


@dataclass(frozen=True, slots=True)
class PassContext:
    """What passes of one pipeline share: the namer of new symbols, and the trace of rules."""

    namer: Namer
    trace: Trace = field(default_factory=Trace)

    @staticmethod
    def of(module: Module, trace: Trace | None = None) -> PassContext:
        """A context for a pipeline that starts with `module`."""
        return PassContext(namer_of(module), trace or Trace())


class Pass(Protocol):
    """A function from module to module with a name."""

    @property
    def name(self) -> str:
        """A verb and a noun, as the file is called."""
        ...

    def run(self, module: Module, context: PassContext) -> Module:
        """The module after the pass; `module` itself where nothing changed."""
        ...


@dataclass(frozen=True, slots=True)
class Phase:
    """Passes under one heading: run in order, and again while they change something, `rounds` times at most."""

    name: str
    passes: tuple[Pass, ...]
    rounds: int = 1


PASSES: Final[Registry[str, Callable[..., Pass]]] = Registry("pass", "argosy.passes")
P = TypeVar("P", bound=type[Any])


def register_pass(cls: P) -> P:
    """Class decorator: enters a pass under its name, which must be that of its file."""
    file = cls.__module__.rpartition(".")[2]
    if cls.name != file:
        raise InternalError(f"the pass {cls.name!r} stands in {file}.py", hint="a pass is named like its file")
    PASSES.add(cls.name, cls)
    return cls


def pass_names() -> list[str]:
    """Names of all passes, sorted."""
    return sorted(name for name, _ in PASSES.items())


def make_pass(name: str, options: Mapping[str, Any] | None = None) -> Pass:
    """A pass by name (`-` counts as `_`), with its options. Raises UsageError with a suggestion for an unknown one."""
    found = PASSES.get(name.replace("-", "_"))
    if found is None:
        known = pass_names()
        hint = did_you_mean(name.replace("-", "_"), known) or f"there are: {', '.join(known)}"
        raise UsageError(f"there is no pass {name!r}", hint=hint)
    try:
        return found(**(options or {}))
    except TypeError as error:
        raise UsageError(f"the pass {name!r} cannot be made: {error}") from None

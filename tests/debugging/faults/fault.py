"""A planted fault: what is wrong, where the blame lies, and a model that shows it.

Faults are planted from outside: a name of the compiler, the runtime or the frontend is bound to something else for a
while. Production code has no hooks for them. None touches memory out of bounds, whatever shapes a reduction tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from argosy.inputs import InputRequest
from argosy.options import CompileOptions
from argosy.rewrite.rule import Rule

__all__ = ["Fault", "Plant", "changed_kernels", "ranges", "replaced", "wrong_kernel", "wrong_rule"]

Plant = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`plant` makes `model` wrong, by `blame`: `pass:…`, `rule:…`, `solution:…`, `stage:…` or `import:…`.

    `nodes` are those of the model without which it can't be seen, the last is where it shows first. `kind` is for
    people; the other fields are what `verify` is asked.
    """

    name: str
    kind: str
    blame: str
    nodes: tuple[str, ...]
    model: Callable[[], onnx.ModelProto]
    plant: Plant
    targets: tuple[str, ...] = ("cpu",)
    device: str | None = None
    against: str = "ref"
    dims: Mapping[str, int | str | tuple[int, ...]] = field(default_factory=lambda: {"N": "3..9"})
    inputs: InputRequest = field(default_factory=InputRequest)
    options: CompileOptions = field(default_factory=CompileOptions)
    raises: bool = False
    """Whether the run ends with an error."""
    cores: int = 1
    """Cores without which it can't be seen."""

    def __str__(self) -> str:
        return self.name


def ranges(**bounds: tuple[float, float]) -> InputRequest:
    """Generated inputs between bounds."""
    return InputRequest(ranges=tuple((name, low, high) for name, (low, high) in bounds.items()))


@contextmanager
def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """In the block `owner.name` is what `change` makes of it; a rule is frozen, and a class may have inherited it."""
    put = object.__setattr__ if isinstance(owner, Rule) else setattr
    before, own = getattr(owner, name), isinstance(owner, Rule) or name in vars(owner)
    put(owner, name, change(before))
    try:
        yield
    finally:
        if own:
            put(owner, name, before)
        else:
            delattr(owner, name)


def wrong_rule(rule: Rule, build: Callable[..., Any]) -> Plant:
    """The rule becomes `build`, which takes the captures that the rule takes."""
    return lambda: replaced(rule, "build", lambda _: build)


class _Changed:
    """The steps of a solution, with other kernels."""

    def __init__(self, steps: Any, change: Callable[[Any], Any]) -> None:
        self._steps = steps
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    def call(self, kernel: Any, reads: Sequence[int], writes: Sequence[int]) -> None:
        self._steps.call(self._change(kernel), reads, writes)

    def launch(self, kernel: Any, reads: Sequence[int], writes: Sequence[int]) -> None:
        self._steps.launch(self._change(kernel), reads, writes)

    def prepared(self, kernel: Any, reads: Sequence[int], kind: Any) -> Any:
        return self._steps.prepared(self._change(kernel), reads, kind)


def changed_kernels(solution: type[Any], change: Callable[[Any], Any]) -> Plant:
    """Kernels of a solution are what `change` makes of them."""

    def changed(lower: Any) -> Any:
        return lambda self, problem, config, steps: lower(self, problem, config, _Changed(steps, change))

    return lambda: replaced(solution, "lower", changed)


def wrong_kernel(solution: type[Any], old: str, new: str) -> Plant:
    """Kernels of a solution have the text `new` for `old`."""
    return changed_kernels(solution, lambda kernel: replace(kernel, text=kernel.text.replace(old, new)))

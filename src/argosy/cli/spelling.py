"""What a spelling is: an option that help does not show, taken under another name or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["COMPILERS", "READERS", "Spelling", "State", "Takes", "becomes", "dropped", "refused", "same"]

READERS: Final = ("read", "params", "compile", "run", "verify", "perf")
"""The verbs that read a model."""
COMPILERS: Final = ("compile", "run", "verify", "perf")
"""The verbs that compile it."""

State: TypeAlias = Literal["same", "accepted", "not needed", "refused"]
"""same: one of our own · accepted: rewritten · not needed: accepted, and always so · refused: with a sentence."""
Takes: TypeAlias = Literal["nothing", "a value", "values", "a name and values"]
"""The words that follow an option: `values` go on to the next option or file, a name begins with @."""
Rewrite: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Spelling:
    """An option by its names, in the verbs that have it.

    `rewrite` gives our words for the values that follow it; where it is None, `told` is why it is refused.
    """

    names: tuple[str, ...]
    verbs: tuple[str, ...]
    state: State
    ours: str
    takes: Takes = "nothing"
    told: str = ""
    rewrite: Rewrite | None = None
    sample: tuple[str, ...] = ()
    """Values to follow the option in a command line that shows it."""


def same(
    names: str, verbs: tuple[str, ...], ours: str = "", *, told: str = "", sample: tuple[str, ...] = ()
) -> Spelling:
    """An option that is ours too, under these names (blank-separated)."""
    first, *_ = names.split()
    return Spelling(tuple(names.split()), verbs, "same", ours or first, told=told, sample=sample)


def becomes(
    names: str,
    verbs: tuple[str, ...],
    ours: str,
    rewrite: Rewrite | None = None,
    *,
    takes: Takes = "nothing",
    told: str = "",
    sample: tuple[str, ...] = (),
) -> Spelling:
    """An option that is rewritten; by default into `ours`, followed by its values."""
    plain: Rewrite = lambda values: [f"{ours}={value}" for value in values] if takes != "nothing" else ours.split()  # noqa: E731
    return Spelling(tuple(names.split()), verbs, "accepted", ours, takes, told, rewrite or plain, sample)


def dropped(names: str, verbs: tuple[str, ...], told: str, *, takes: Takes = "nothing") -> Spelling:
    """An option that asks for what is always so."""
    return Spelling(tuple(names.split()), verbs, "not needed", "", takes, told, lambda _: ())


def refused(
    names: str,
    verbs: tuple[str, ...],
    told: str,
    *,
    ours: str = "",
    takes: Takes = "nothing",
    sample: tuple[str, ...] = (),
) -> Spelling:
    """An option that we do not have, with a sentence that says what there is instead."""
    return Spelling(tuple(names.split()), verbs, "refused", ours, takes, told, None, sample)

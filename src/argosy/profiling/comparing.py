"""What is measured beside a session, in turn with it: other artifacts, other engines."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from argosy.artifact.artifact import Artifact
from argosy.comparison import Agree, compare, is_quantised
from argosy.errors import UsageError
from argosy.profiling.peers import PEERS, Peer, make_peer
from argosy.profiling.times import Times
from argosy.registry import did_you_mean
from argosy.runtime.gpu.families import EMULATED, GPU_FAMILIES
from argosy.runtime.session import Session
from argosy.targets.base import precision_of

__all__ = ["Compared", "Rival", "compared", "make_rivals"]

Rival: TypeAlias = Session | Artifact | str | os.PathLike[str]
"""What may be compared with: an artifact or its path, a session, or an engine with its file, `onnxruntime=m.onnx`."""


_PRECISIONS: Final = ("fp32", "tf32", "fp16", "bf16")
"""What code computes in, the most exact first."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Another's runs of the same inputs, in turn with ours. `ratio` is its median over ours: above 1, ours is faster.

    `differs` is where its outputs are not ours by the project's rule for the shorter precision of the two, or empty.
    """

    name: str
    times: Times
    ratio: float
    differs: str


def make_rivals(
    rivals: Sequence[Rival],
    session: Session,
    values: Mapping[str, Any],
    open_artifact: Callable[[Artifact | str | os.PathLike[str]], Session],
) -> tuple[Peer, ...]:
    """Every rival, ready to run `values`. Raises UsageError for what is not known, and other inputs or outputs."""
    precision, device = precision_of(session.choice(values).variant), _device(session, values)
    found = []
    for rival in rivals:
        if isinstance(rival, str) and rival.partition("=")[0] in PEERS:
            found.append(
                make_peer(rival, values, session.outputs, threads=session.threads, precision=precision, device=device)
            )
        else:
            name = os.fspath(rival) if isinstance(rival, (str, os.PathLike)) else ""
            if name and not Path(name).exists():
                raise UsageError(
                    f"there is no file and no peer {name!r}",
                    hint=did_you_mean(name, list(PEERS)) or f"name an artifact, or one of {', '.join(PEERS)}",
                )
            other = rival if isinstance(rival, Session) else open_artifact(rival)
            found.append(_ours(name or other.artifact.where, other, session, values))
    return tuple(found)


def _ours(name: str, other: Session, session: Session, values: Mapping[str, Any]) -> Peer:
    for what, expected, there in (
        ("inputs", session.inputs, other.inputs),
        ("outputs", session.outputs, other.outputs),
    ):
        if set(expected) != set(there):
            raise UsageError(
                f"its {what} are {', '.join(there)}, expected {', '.join(expected)}",
                where=name,
                hint="compare artifacts of one model",
            )
    try:
        choice = other.choice(values)
    except UsageError as error:  # it takes other types or sizes
        raise error.at(name) from None
    outputs = list(session.outputs)
    return Peer(
        f"{name}: {other.variant}",
        lambda: other.run(values),
        lambda: other.run(values, outputs),
        precision_of(choice.variant),
    )


def _device(session: Session, values: Mapping[str, Any]) -> str:
    """Where these inputs run, as torch calls it; what is emulated is on the CPU."""
    variant = session.choice(values).variant
    if variant is None or variant.family not in GPU_FAMILIES or session.device.startswith(EMULATED):
        return "cpu"
    _, _, number = session.device.partition(":")
    return f"cuda:{number}" if number.isdigit() else "cuda"


def compared(
    rivals: Sequence[Peer],
    seconds: Sequence[Sequence[float]],
    ours: Sequence[float],
    session: Session,
    values: Mapping[str, Any],
) -> tuple[Compared, ...]:
    """The figures of `rivals` from the `seconds` of each, and of `ours`; their outputs for `values` beside ours."""
    expected = session.run(values)
    quantised = not session.artifact.is_slim and is_quantised(session.artifact.program())
    own = precision_of(session.choice(values).variant)
    base = statistics.median(ours)
    found = []
    for rival, spent in zip(rivals, seconds, strict=True):
        precision = max(own, rival.precision, key=_PRECISIONS.index)
        mismatches = compare(expected, rival.results(), Agree(quantised, precision))
        differs = str(mismatches[0]) if mismatches else ""
        found.append(Compared(rival.name, Times.of(spent), statistics.median(spent) / base if base else 0.0, differs))
    return tuple(found)

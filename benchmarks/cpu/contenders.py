"""Engines behind one interface: made ready once with a thread count, then run on the same inputs again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

import argosy
from argosy.errors import EnvironmentError_
from argosy.profiling.peers import onnxruntime_peer, openvino_peer
from benchmarks.cpu.cases import Files

__all__ = ["ENGINES", "OURS", "SYMBOLIC", "Contender", "Feeds"]

OURS: Final = "argosy"
SYMBOLIC: Final = "symbolic"
Feeds = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Contender:
    """`run` does one inference and hands nothing back; `results` gives the outputs of the last one, by name."""

    name: str
    run: Callable[[], object]
    results: Callable[[], dict[str, Any]]
    session: Any


def argosy_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """Ours, from the saved artifact; it holds the precision."""
    del precision
    session = argosy.Session(files.artifact, threads=threads)
    values = dict(feeds)
    return Contender(OURS, lambda: session.run(values), lambda: session.run(values), session)


def symbolic_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """Ours for every size: the dims that the model leaves open are symbols."""
    artifact = argosy.compile(files.model, targets=["cpu"], precision=precision)
    session = argosy.Session(artifact, threads=threads)
    values = dict(feeds)
    return Contender(SYMBOLIC, lambda: session.run(values), lambda: session.run(values), session)


def onnxruntime_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """ONNX Runtime as `argosy perf --compare` sets it up, on the model with bound sizes where that loads."""
    del precision  # its CPU kernels know fp32 and integers
    try:
        peer = onnxruntime_peer(str(files.bound), feeds, threads=threads)
    except EnvironmentError_:  # sizes that contradict a branch which is never taken
        peer = onnxruntime_peer(str(files.model), feeds, threads=threads)
    return Contender("onnxruntime", peer.run, peer.results, peer)


def openvino_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """OpenVINO as `argosy perf --compare` sets it up."""
    outputs = files.told()["outputs"]
    peer = openvino_peer(str(files.model), feeds, outputs=outputs, threads=threads, precision=precision)
    return Contender("openvino", peer.run, peer.results, peer)


ENGINES: Final[Mapping[str, Callable[[Files, Feeds, int, str], Contender]]] = {
    OURS: argosy_contender,
    SYMBOLIC: symbolic_contender,
    "onnxruntime": onnxruntime_contender,
    "openvino": openvino_contender,
}

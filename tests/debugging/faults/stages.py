"""What is done to a plan as a whole: memory, copies, results in place, work at load; and the cache of compiled code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from argosy.artifact.lifetimes import Lifetime
from argosy.artifact.plan import CallStep
from argosy.runtime import body
from argosy.targets.cpu import avoid_copies, in_place, lower
from argosy.targets.cpu import target as cpu
from argosy.toolchains import zig
from tests.debugging.faults.fault import Fault, replaced
from tests.debugging.faults.network import Network, convolutional, perceptron

__all__ = ["FAULTS"]


def read_again(net: Network, x: str) -> str:
    """A value that is read long after its first reader."""
    kept = net.op("MatMul", x, net.weight(24, 24))
    first = net.op("MatMul", net.op("Sin", kept), net.weight(24, 24))
    second = net.op("MatMul", net.op("Cos", first), net.weight(24, 24))
    return net.op("Mul", net.op("Softmax", second, axis=-1), kept)


def too_short(old: Any) -> Any:
    """Nothing is thought to be needed for more than two steps."""

    def lives(*given: Any, **more: Any) -> dict[int, Lifetime]:
        found: dict[int, Lifetime] = old(*given, **more)
        ends = {number: min(life.end, life.start + 1) if life.start else life.end for number, life in found.items()}
        return {number: Lifetime(life.start, ends[number]) for number, life in found.items()}

    return lives


def two_readers(net: Network, x: str) -> str:
    made = net.op("MatMul", x, net.weight(24, 16))
    first = net.op("Softmax", net.op("Neg", made), axis=-1)
    return net.op("Sub", net.op("MatMul", first, net.weight(16, 16)), net.op("Abs", made))


def first_reader(old: Any) -> Any:
    """The first step that reads a buffer is taken for the last."""

    def lives(*given: Any, visit: Any, **more: Any) -> dict[int, Lifetime]:
        first: dict[int, int] = {}

        def look(position: int, step: Any) -> None:
            visit(position, step)
            for number in step.reads if isinstance(step, CallStep) else ():
                first.setdefault(number, position)

        found: dict[int, Lifetime] = old(*given, visit=look, **more)
        return {number: Lifetime(life.start, first.get(number, life.end)) for number, life in found.items()}

    return lives


def batches(net: Network, x: str) -> str:
    left, right = net.op("Softmax", x, axis=-1), net.op("MatMul", x, net.weight(24, 24), name="right")
    both = net.op("Concat", left, right, axis=0, name="guilty")
    return net.op("Softmax", net.op("Concat", both, both, axis=1), axis=-1)


def exchanged(old: Any) -> Any:
    """Parts of one size lie in each other's place."""
    return lambda join: list(reversed(old(join))) if len({str(size) for _, size in join.parts}) == 1 else old(join)


def scaled(net: Network, x: str) -> str:
    found = net.op("Conv", x, net.weight(6, 8, 3, 3), net.weight(6), name="conv")
    moved = net.op("Mul", found, net.weight(1, 6, 1, 1, low=2.0, high=3.0), name="guilty")
    return net.op("Sub", moved, net.op("Conv", x, net.weight(6, 8, 3, 3)))


def too_early(old: Any) -> Any:
    """What is prepared last comes first."""

    def commit(self: Any, draft: Any) -> None:
        before = self.prepare
        self.prepare = []
        old(self, draft)
        self.prepare = [*self.prepare, *before]

    return commit


def shares(net: Network, x: str) -> str:
    wide = net.op("Softmax", net.op("MatMul", x, net.weight(24, 21)), axis=-1, name="guilty")
    return net.op("Sub", wide, net.op("Softmax", net.op("MatMul", x, net.weight(24, 21)), axis=0))


def stale(old: Any) -> Any:
    """Under the keys of softmaxes the cache has objects that were compiled from other text."""
    held: dict[str, bytes] = {}

    def objects(sources: Sequence[Any], target: Any, **more: Any) -> list[bytes]:
        for source in sources:
            text = source.text.replace("total += (float64)power;", "total += 1;")
            if text != source.text and more.get("cached", True):
                key = zig._key(source, target, zig.zig_version())
                if key not in held:
                    (held[key],) = old([replace(source, text=text)], target, cached=False)
                zig.object_cache().put(key, held[key], {})
        return list(old(sources, target, **more))

    return objects


@contextmanager
def stale_objects() -> Iterator[None]:
    """A cache with stale entries, which nobody else sees."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_CACHE", folder)
        with replaced(cpu, "compile_objects", stale):
            yield


FAULTS: Final = (
    Fault("shared_bytes", "memory plan", "stage:memory", (), lambda: perceptron(read_again),
          lambda: replaced(body, "lifetimes", too_short)),
    Fault("not_the_last_reader", "result in place of what is read again", "stage:in_place", (),
          lambda: perceptron(two_readers), lambda: replaced(in_place, "lifetimes", first_reader)),
    Fault("joined_places", "wrong order of pieces", "stage:copies", ("right", "guilty"),
          lambda: perceptron(batches), lambda: replaced(avoid_copies._Join, "offsets", exchanged)),
    Fault("prepared_too_early", "wrong order of work at load", "stage:load", ("conv", "guilty"),
          lambda: convolutional(scaled), lambda: replaced(lower._Lowering, "_commit", too_early)),
    Fault("stale_objects", "stale cache entry", "stage:cache", ("guilty",), lambda: perceptron(shares), stale_objects),
)  # fmt: skip

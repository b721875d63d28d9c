"""Random fleets of tiny programs: whatever is merged with whatever, variants keep their bytes, and order is nothing."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import argosy
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import fallback_slot
from argosy.artifact.merge import merge
from argosy.artifact.subset import drop
from argosy.ir import Builder, Program
from argosy.ops.matmul import Dot
from tests.artifact import samples
from tests.targets.mirror import MirrorTarget

ARCHS = [
    MirrorTarget(revision, portable=portable, family=family)
    for family in ("host", "nvidia", "amd")
    for revision in (1, 2)
    for portable in (False, True)
]
KIND = st.tuples(st.integers(1, 3), st.integers(0, 1), st.sampled_from(("add", "mul", "max")))


@functools.lru_cache(maxsize=64)
def program(width: int, seed: int, op: str) -> Program:
    """op(x @ weight, bias), with a weight that is an entry of its own where it is wide."""
    rng = np.random.default_rng(seed)
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 700 * width])
    y = b.add(Dot(), x, b.constant(rng.standard_normal((700 * width, 2), np.float32), name="weight"))
    return Program(b.module({"y": b.pointwise(op, y, b.constant(np.ones(2, np.float32), name="bias"))}))


@functools.lru_cache(maxsize=1024)
def compiled(kind: tuple[int, int, str], archs: tuple[MirrorTarget, ...]) -> bytes:
    return argosy.compile(program(*kind), targets=archs).to_bytes()


def merged(inputs: Sequence[ArtifactFile], fallbacks: Sequence[ArtifactFile] = ()) -> bytes:
    file = io.BytesIO()
    merge(inputs, file, fallbacks=fallbacks, producer=samples.PRODUCER)
    return file.getvalue()


def stored(file: ArtifactFile) -> dict[str, tuple[str, bytes]]:
    """Hash and stored bytes of every entry."""
    container, entries = file.container, file.manifest.entries
    return {n: (e.sha256, bytes(container.stored_bytes(container.entries[n]))) for n, e in entries.items()}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), kind=KIND)
def test_random_merges_keep_bytes_and_commute(data: st.DataObject, kind: tuple[int, int, str]) -> None:
    natives = [arch for arch in ARCHS if not arch.portable]
    portables = [arch for arch in ARCHS if arch.portable]
    some = st.lists(st.sampled_from(natives), min_size=1, max_size=3, unique=True)
    inputs = [
        ArtifactFile.open(compiled(kind, tuple(archs)), where=str(number))
        for number, archs in enumerate(data.draw(st.lists(some, min_size=2, max_size=4)))
    ]
    # One for each kind of machine: NVIDIA's and the host's two stand for the same, AMD's do not.
    chosen = data.draw(st.lists(st.sampled_from(portables), max_size=4, unique_by=_slot))
    fallbacks = [ArtifactFile.open(compiled(kind, (arch,)), where=arch.arch) for arch in chosen]
    whole = merged(inputs, fallbacks)
    result = ArtifactFile.open(whole)
    result.verify()

    entries = stored(result)
    for file in (*inputs, *fallbacks):
        assert stored(file).items() <= entries.items()
    expected = {v.key for file in (*inputs, *fallbacks) for v in file.manifest.variants}
    assert {variant.key for variant in result.manifest.variants} == expected
    assert {v.arch for v in result.manifest.variants if v.fallback} == {arch.arch for arch in chosen}

    turned = data.draw(st.permutations(inputs)), data.draw(st.permutations(fallbacks))
    assert merged(*turned) == whole
    cut = data.draw(st.integers(2, len(inputs)))
    first = ArtifactFile.open(merged(inputs[:cut], fallbacks))
    assert merged([*inputs[cut:], first, inputs[0]]) == whole, "merging in steps, once more with what is in it already"

    if len(expected) > 1:
        target = io.BytesIO()
        drop(result, [data.draw(st.sampled_from(sorted(expected)))], target)
        less = ArtifactFile.open(target.getvalue())
        less.verify()
        assert stored(less).items() < entries.items()
        assert merged([less, *inputs], fallbacks) == whole, "what was dropped comes back"


def _slot(arch: MirrorTarget) -> tuple[str, ...]:
    file = ArtifactFile.open(compiled((1, 0, "add"), (arch,)))
    return fallback_slot(file.manifest.variants[0])

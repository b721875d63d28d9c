"""20,000 damaged models (100,000 nightly): each is refused with a ModelError, or valid; nothing else may come out.

They run in processes of their own, under limits of time and memory. The seeds are fixed: a failure repeats by its
number (`python -m tests.fuzz --write N` writes the model).
"""

from __future__ import annotations

import pytest
from google.protobuf.internal.encoder import _VarintBytes

from argosy.errors import ModelError
from argosy.frontends.onnx import load
from tests.fuzz.seeds import SEEDS, seed
from tests.fuzz.worker import run_cases

CHUNK = 5000
CHUNKS = 4


@pytest.mark.parametrize(
    "chunk", [*range(CHUNKS), *(pytest.param(chunk, marks=pytest.mark.nightly) for chunk in range(CHUNKS, 5 * CHUNKS))]
)
def test_damaged_models_are_refused_or_valid(chunk: int) -> None:
    summary = run_cases(range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert not summary.failures
    kinds = summary.outcomes
    assert sum(kinds.values()) == CHUNK
    assert kinds["run"] + kinds["imported"] > CHUNK / 10, "the damage is so great that nothing is left to import"
    assert len(kinds) > 200, "the damage reaches too few of the rules"
    assert kinds["run: too long"] + kinds["run: too large"] < CHUNK / 100


@pytest.mark.parametrize("name", SEEDS)
def test_undamaged_models_are_valid(name: str) -> None:
    """Else damage to them would show little."""
    load(seed(name).SerializeToString())


@pytest.mark.parametrize("depth", [30, 100, 2000])
def test_messages_nested_in_each_other(depth: int) -> None:
    """Conditionals inside conditionals, deeper than a parser or an importer may go down."""
    raw = b""
    for level in range(depth):
        attribute = _field(1, b"then_branch") + _field(6, raw) + b"\xa0\x01\x05"  # name, g, type = GRAPH
        node = _field(1, b"c") + _field(2, b"y%d" % level) + _field(4, b"If") + _field(5, attribute)
        raw = _field(1, node)
    with pytest.raises(ModelError):
        load(b"\x08\x0a" + _field(7, raw) + _field(8, b"\x10\x11"))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    return _VarintBytes(number << 3 | 2) + _VarintBytes(len(content)) + content

"""The ops of `tests.ir.ops`, registered while a module of tests runs, and gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from argosy.ir.op import OPS
from tests.ir.ops import TEST_OPS


@pytest.fixture(scope="module", autouse=True)
def test_ops() -> Iterator[None]:
    OPS.load()
    with pytest.MonkeyPatch.context() as patch:
        for cls in TEST_OPS:
            patch.setitem(OPS._entries, cls.name, cls)
        yield

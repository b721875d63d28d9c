"""The blocked layout: sizes and places."""

from __future__ import annotations

from argosy.ir.dim import Symbol, symbol_dim
from argosy.targets.cpu.layout import Blocked


def test_a_plane_holds_the_image_and_its_halo() -> None:
    layout = Blocked(((1, 2), (3, 4)))
    assert layout.padded((5, 6)) == (8, 13)
    assert layout.steps((5, 6)) == (13, 1)
    assert layout.pixel((5, 6), (0, 0)) == 1 * 13 + 3
    assert layout.kind((2, 33, 5, 6)).dims == (2, 3, 8 * 13, 16)
    assert layout.offset((2, 33, 5, 6), 1, 2, (4, 5)) == ((1 * 3 + 2) * 104 + 5 * 13 + 8) * 16


def test_planes_are_no_multiple_of_a_page() -> None:
    bare = Blocked.bare(2)
    assert bare.plane((56, 56)) == 56 * 56 + 1
    assert bare.plane((7, 7)) == 49
    size = symbol_dim(Symbol("H"))
    assert str(bare.plane((size, 8))) == "8*H + 1"


def test_a_layout_covers_what_asks_for_less() -> None:
    wide, narrow, other = Blocked(((1, 1), (2, 2))), Blocked(((0, 1), (2, 0))), Blocked(((3, 0), (0, 0)))
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    assert not wide.covers(Blocked.bare(1))
    assert narrow.merged(other) == Blocked(((3, 1), (2, 0)))
    assert Blocked.bare(3).is_bare
    assert not narrow.is_bare

"""Which items of a tensor are distinct: every item, an element or a slice, is compared with all others.

That takes a square of comparisons, but no order of work: what an item needs to know are counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, ceildiv, dim_max, symbol_dim
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch

__all__ = ["Parts", "distinct_results_kernel", "first_kernel", "place_kernel"]

_PAIR: Final = 32
Parts = tuple[DimLike, DimLike, DimLike]
"""Elements before the axis, items along it, elements behind it."""


def _writer(kind: TensorType, parts: Parts, temporaries: int) -> KernelWriter:
    own = kind.with_dims(parts)
    parameter = Instruction(Parameter(own), (), (own,), (None,), ("x",))
    writer = KernelWriter(Module("distinct", (parameter,), (), (), ()), temporaries=(INT64,) * temporaries)
    text = writer.text
    text.root("own", f"{writer.program()} * {_PAIR} + tl.arange(0, {_PAIR})[:, None]")
    text.line(f"inside = own < {text.dim(parts[1])}")
    writer.elements.masks.append(("inside", text.roots["own"]))
    return writer


@contextmanager
def _others(writer: KernelWriter, parts: Parts) -> Iterator[None]:
    """A loop over all items, a block at a time."""
    text, elements = writer.text, writer.elements
    limit = text.dim(parts[1])
    with text.block(f"for start in range(0, {limit}, {_PAIR}):"), elements.scope():
        text.root("other", f"start + tl.arange(0, {_PAIR})[None, :]")
        text.line(f"across = other < {limit}")
        elements.masks.append(("across", text.roots["other"]))
        yield
        elements.masks.pop()


def _compare(writer: KernelWriter, kind: TensorType, parts: Parts) -> None:
    """Write `above` and `below`: whether an item is greater, or less, than another, by its first different element."""
    text, elements = writer.text, writer.elements
    outer, _, inner = parts
    x = writer.module.parameters[0].result()
    suffix = "float" if kind.dtype.compute.is_float else "integer"
    for name in ("above", "below"):
        text.line(f"{name} = tl.zeros([{_PAIR}, {_PAIR}], tl.int32)")
    with text.block(f"for part in range(0, {text.dim(outer * inner)}):"), elements.scope():
        text.line(f"row = part // {text.dim(inner)}")
        text.line(f"behind = part % {text.dim(inner)}")
        found = []
        for item in ("own", "other"):
            indices = tuple(symbol_dim(Symbol(f"@{name}", 0)) for name in ("row", item, "behind"))
            value = elements.of(x, Access(parts, parts, indices))
            found.append(text.let(f"{value}.to(tl.int32)") if kind.dtype is BOOL else value)
        own, other = found
        text.line("open = (above + below) == 0")
        text.line(f"above = above + (open & less_{suffix}({other}, {own})).to(tl.int32)")
        text.line(f"below = below + (open & less_{suffix}({own}, {other})).to(tl.int32)")


def first_kernel(kind: TensorType, parts: Parts) -> Kernel:
    """Writes for each item the first one that is equal, and how many are."""
    writer = _writer(kind, parts, 0)
    text = writer.text
    limit = text.dim(parts[1])
    text.line(f"first = tl.full([{_PAIR}, 1], 0, tl.int64) + {limit}")
    text.line(f"count = tl.zeros([{_PAIR}, 1], tl.int64)")
    with _others(writer, parts):
        _compare(writer, kind, parts)
        text.line("same = ((above + below) == 0) & across & inside")
        nearest = f"tl.where(same, other.to(tl.int64), {limit})"
        text.line(f"first = tl.minimum(first, tl.min({nearest}, 1, keep_dims=True))")
        text.line("count = count + tl.sum(same.to(tl.int64), 1, keep_dims=True)")
    text.line(f"tl.store({writer.result()} + own, first, mask=inside)")
    text.line(f"tl.store({writer.result(1)} + own, count, mask=inside)")
    return writer.kernel(Launch((ceildiv(parts[1], _PAIR), 1, 1), 4), [INT64, INT64]).labelled("unique_first")


def place_kernel(kind: TensorType, parts: Parts, *, in_order: bool) -> Kernel:
    """Writes for each item the place of its value among the distinct ones, and how many of these there are.

    They are `in_order` of size, or in that of their first occurrences, which are its temporary.
    """
    writer = _writer(kind, parts, 1)
    text, firsts = writer.text, writer.temporary(0)
    text.line(f"place = tl.zeros([{_PAIR}, 1], tl.int64)")
    text.line("total = tl.full([], 0, tl.int64)")
    if not in_order:
        text.line(f"mine = tl.load({firsts} + own, mask=inside, other=0)")
    with _others(writer, parts):
        text.line(f"leads = across & (tl.load({firsts} + other, mask=across, other=-1) == other)")
        if in_order:
            _compare(writer, kind, parts)
            text.line("before = leads & (above != 0)")
        else:
            text.line("before = leads & (other < mine)")
        text.line("place = place + tl.sum(before.to(tl.int64), 1, keep_dims=True)")
        text.line("total = total + tl.sum(tl.sum(leads.to(tl.int64), 1), 0)")
    text.line(f"tl.store({writer.result()} + own, place, mask=inside)")
    text.line(f"tl.store({writer.result(1)}, total)")
    grid = dim_max(ceildiv(parts[1], _PAIR), 1)
    return writer.kernel(Launch((grid, 1, 1), 4), [INT64, INT64]).labelled("unique_place")


def distinct_results_kernel(items: DimLike) -> Kernel:
    """From first occurrences, counts and places of all items to those of the distinct ones, in their order."""
    writer = KernelWriter(Module("distinct", (), (), (), ()), temporaries=(INT64,) * 3)
    text = writer.text
    text.wide = True
    firsts, counts, places = (writer.temporary(place) for place in range(3))
    text.line(f"own = {writer.program()} * 1024 + tl.arange(0, 1024)")
    text.line(f"inside = own < {text.dim(items)}")
    text.line(f"leads = inside & (tl.load({firsts} + own, mask=inside, other=-1) == own)")
    text.line(f"to = tl.load({places} + own, mask=leads, other=0)")
    text.line(f"tl.store({writer.result()} + to, own, mask=leads)")
    text.line(f"tl.store({writer.result(1)} + to, tl.load({counts} + own, mask=leads, other=0), mask=leads)")
    return writer.kernel(Launch((ceildiv(items, 1024), 1, 1), 4), [INT64, INT64]).labelled("unique_results")

"""Kernels of distinct items by sorting: equal items are a run in the order of their size.

An item is an element, or a slice of a few, sorted by each of its elements, the last one first, as the sort is stable.
"""

from __future__ import annotations

from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import BOOL, INT64, UINT8, DType
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.distinct import Parts
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.radix import SortedLines, key_of
from argosy.targets.gpu.codegen.selecting import BLOCK

__all__ = [
    "first_place_kernel",
    "flags_kernel",
    "item_keys_kernel",
    "leaders_kernel",
    "run_items_kernel",
    "runs_kernel",
]


def _writer(kind: TensorType, parts: Parts, temporaries: tuple[DType, ...]) -> KernelWriter:
    """A kernel over the items, `own`; what it reads is inside."""
    held = kind.with_dims(parts)
    parameter = Instruction(Parameter(held), (), (held,), (None,), ("x",))
    writer = KernelWriter(Module("distinct", (parameter,), (), (), ()), temporaries=temporaries)
    _items(writer, parts[1])
    return writer


def _items(writer: KernelWriter, count: DimLike) -> None:
    text = writer.text
    text.root("own", f"{writer.program()} * {BLOCK} + tl.arange(0, {BLOCK})")
    text.line(f"count = {text.dim(count)}")
    text.line("inside = own < count")
    writer.elements.masks.append(("inside", text.roots["own"]))


def _launch(count: DimLike) -> Launch:
    return Launch((ceildiv(count, BLOCK), 1, 1), 4)


def _element(writer: KernelWriter, kind: TensorType, parts: Parts, item: str, part: int) -> str:
    """Element `part` of an item, comparable."""
    inner = parts[2]
    row, behind = (part // inner, part % inner) if isinstance(inner, int) else (0, 0)
    at: DimLike = symbol_dim(Symbol(f"@{item}", 0))
    value = writer.elements.of(writer.module.parameters[0].result(), Access(parts, parts, (row, at, behind)))
    return writer.text.let(f"{value}.to(tl.int32)") if kind.dtype is BOOL else value


def item_keys_kernel(kind: TensorType, parts: Parts, order: SortedLines, part: int, *, later: bool) -> Kernel:
    """Writes the keys of element `part` of all items, in the order of its temporary where `later`."""
    writer = _writer(kind, parts, (order.places,) if later else ())
    text, item = writer.text, "own"
    if later:
        loaded = f"tl.load({writer.temporary(0)} + own, mask=inside, other=0).to({text.index_type})"
        item = text.derive("item", loaded, "own")
    key, _ = key_of(_element(writer, kind, parts, item, part), kind.dtype)
    text.line(f"tl.store({writer.result()} + own, {key}, mask=inside)")
    return writer.kernel(_launch(parts[1]), [order.dtype]).labelled("unique_keys")


def flags_kernel(kind: TensorType, parts: Parts, order: SortedLines, elements: int) -> Kernel:
    """Says of each place in the order whether a run begins there. Its temporary are the items in order."""
    writer = _writer(kind, parts, (order.places,))
    text = writer.text
    for name, place in (("mine", "own"), ("last", "tl.maximum(own - 1, 0)")):
        loaded = f"tl.load({writer.temporary(0)} + {place}, mask=inside, other=0).to({text.index_type})"
        text.derive(name, loaded, "own")
    less = f"less_{'float' if kind.dtype.compute.is_float else 'integer'}"
    text.line("opens = own == 0")
    for part in range(elements):
        mine, last = (_element(writer, kind, parts, item, part) for item in ("mine", "last"))
        text.line(f"opens = opens | {less}({mine}, {last}) | {less}({last}, {mine})")
    text.line(f"tl.store({writer.result()} + own, opens.to(tl.uint8), mask=inside)")
    return writer.kernel(_launch(parts[1]), [UINT8]).labelled("unique_flags")


def _ranked(writer: KernelWriter) -> None:
    """`flag` of an item, and how many flags there are before and with it: temporaries 0 and 1 are flags and offsets."""
    text = writer.text
    text.line(f"flag = tl.load({writer.temporary(0)} + own, mask=inside, other=0) != 0")
    text.line(f"rank = tl.load({writer.temporary(1)} + tl.program_id(0)) + tl.cumsum(flag.to(tl.int32), 0) - 1")


def runs_kernel(count: DimLike) -> Kernel:
    """Writes the run of each place in the order, and where each run begins."""
    writer = KernelWriter(Module("runs", (), (), (), ()), temporaries=(UINT8, INT64))
    writer.text.wide = True
    _items(writer, count)
    _ranked(writer)
    writer.text.line(f"tl.store({writer.result()} + own, rank, mask=inside)")
    writer.text.line(f"tl.store({writer.result(1)} + rank, own, mask=inside & flag)")
    return writer.kernel(_launch(count), [INT64, INT64]).labelled("unique_runs")


def run_items_kernel(count: DimLike, places: DType) -> Kernel:
    """Writes for each item the first one that is equal, how many are, and the number of its run.

    Temporaries: the items in order, the run of each place, where runs begin, and how many there are.
    """
    writer = KernelWriter(Module("runs", (), (), (), ()), temporaries=(places, INT64, INT64, INT64))
    text = writer.text
    text.wide = True
    _items(writer, count)
    items, runs, begins, total = (writer.temporary(place) for place in range(4))
    text.line(f"item = tl.load({items} + own, mask=inside, other=0)")
    text.line(f"run = tl.load({runs} + own, mask=inside, other=0)")
    text.line(f"begin = tl.load({begins} + run, mask=inside, other=0)")
    text.line(f"more = inside & (run + 1 < tl.load({total}))")
    text.line(f"end = tl.where(more, tl.load({begins} + run + 1, mask=more, other=0), count)")
    text.line(f"first = tl.load({items} + begin, mask=inside, other=0)")
    for place, value in enumerate(("first.to(tl.int64)", "end - begin", "run")):
        text.line(f"tl.store({writer.result(place)} + item, {value}, mask=inside)")
    return writer.kernel(_launch(count), [INT64] * 3).labelled("unique_items")


def leaders_kernel(count: DimLike) -> Kernel:
    """Says of each item whether it is the first of those equal. Its temporary are the firsts."""
    writer = KernelWriter(Module("leaders", (), (), (), ()), temporaries=(INT64,))
    writer.text.wide = True
    _items(writer, count)
    first = f"tl.load({writer.temporary(0)} + own, mask=inside, other=-1)"
    writer.text.line(f"tl.store({writer.result()} + own, ({first} == own).to(tl.uint8), mask=inside)")
    return writer.kernel(_launch(count), [UINT8]).labelled("unique_leaders")


def first_place_kernel(count: DimLike, *, gather: bool) -> Kernel:
    """Writes the place of each item that leads among those that do; where `gather`, of each item that of its leader.

    Temporaries: flags and offsets of the blocks; or the firsts, and the places of leaders.
    """
    writer = KernelWriter(Module("places", (), (), (), ()), temporaries=(INT64 if gather else UINT8, INT64))
    text = writer.text
    text.wide = True
    _items(writer, count)
    if gather:
        text.line(f"first = tl.load({writer.temporary(0)} + own, mask=inside, other=0)")
        text.line(f"rank = tl.load({writer.temporary(1)} + first, mask=inside, other=0)")
    else:
        _ranked(writer)
    text.line(f"tl.store({writer.result()} + own, rank, mask=inside)")
    return writer.kernel(_launch(count), [INT64]).labelled("unique_places")

"""Non-maximum suppression: a program for each batch and class keeps the best box that is left, again and again.

One pass over the boxes drops those that overlap the last kept one too much, and finds the best of the others.
"""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64, UINT8
from argosy.ir.module import Module
from argosy.ops.sort import NonMaxSuppression
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.lowering.accesses import op_of

__all__ = ["rows_of_boxes_kernel", "select_kernel"]

_BLOCK: Final = 512


def select_kernel(module: Module) -> Kernel:
    """Results: int64[lines, boxes], the kept boxes of each line first; int64[lines], how many; uint8, its own notes."""
    (instruction,) = module.instructions
    op = op_of(instruction, NonMaxSuppression)
    writer = KernelWriter(module)
    text, pointers = writer.text, writer.elements.pointers
    text.wide = True
    operands = [*instruction.operands, *[None] * (5 - len(instruction.operands))]
    boxes, scores, most, overlap, floor = (value and pointers[value.instruction] for value in operands)
    _, classes, count = operands[1].shape if operands[1] is not None else (0, 0, 0)
    number = text.dim(count)
    text.line(f"line = {writer.program()}")
    text.line(f"boxes = {boxes} + line // {text.dim(classes)} * {number} * 4")
    text.line(f"scores = {scores} + line * {number}")
    text.line(f"notes = {writer.result(2)} + line * {number}")
    text.line(f"most = {f'tl.load({most}).to(tl.int64)' if most else 'tl.full([], 0, tl.int64)'}")
    text.line(f"overlap = {f'tl.load({overlap}).to(tl.float32)' if overlap else '0.0'}")
    with text.block(f"for start in range(0, {number}, {_BLOCK}):"):
        text.line(f"at = start + tl.arange(0, {_BLOCK})")
        text.line(f"tl.store(notes + at, tl.full([{_BLOCK}], 1, tl.uint8), mask=at < {number})")
    text.line("tl.debug_barrier()")
    text.line("found = tl.full([], 0, tl.int64)")
    text.line("last = tl.full([], -1, tl.int64)")
    text.line(f"going = (most > 0) & ({number} > 0)")
    with text.block("while going:"):
        text.line(f"a, b, c, d = box_corners(boxes + 4 * tl.maximum(last, 0), {op.center_point_box})")
        text.line("best = tl.full([], -1, tl.int64)")
        with text.block(f"for start in range(0, {number}, {_BLOCK}):"):
            text.line(f"at = start + tl.arange(0, {_BLOCK})")
            text.line(f"inside = at < {number}")
            text.line("left = (tl.load(notes + at, mask=inside, other=0) != 0) & inside")
            text.line(f"place = tl.minimum(at, {number} - 1)")
            text.line(f"e, f, g, h = box_corners(boxes + 4 * place, {op.center_point_box})")
            text.line("stays = (box_overlap(a, b, c, d, e, f, g, h) <= overlap) & (at != last)")
            text.line("left = left & (stays | (at * 0 + last < 0))")
            text.line("tl.store(notes + at, left.to(tl.uint8), mask=inside)")
            text.line("score = tl.load(scores + place)")
            text.line("key = tl.where(score != score, 0, order_float(score) + 1) * 2147483648 + (2147483647 - place)")
            text.line("best = tl.maximum(best, tl.max(tl.where(left, key, -1), 0))")
        text.line("tl.debug_barrier()")
        text.line("last = tl.where(best < 0, 0, 2147483647 - (best & 2147483647))")
        above = f" & (tl.load(scores + last) > tl.load({floor}))" if floor else ""
        text.line(f"going = (best >= 0){above}")
        text.line(f"tl.store({writer.result()} + line * {number} + found, last, mask=going)")
        text.line("found = found + going.to(tl.int64)")
        text.line("going = going & (found < most)")
    text.line(f"tl.store({writer.result(1)} + line, found)")
    batches = operands[1].shape[0] if operands[1] is not None else 0
    return writer.kernel(Launch((batches * classes, 1, 1), 4), [INT64, INT64, UINT8]).labelled("suppress")


def rows_of_boxes_kernel(lines: DimLike, classes: DimLike, count: DimLike) -> Kernel:
    """From kept boxes, how many there are on each line and before it, to rows of batch, class and box."""
    writer = KernelWriter(Module("rows", (), (), (), ()), temporaries=(INT64, INT64, INT64))
    text = writer.text
    text.wide = True
    chosen, counts, offsets = (writer.temporary(place) for place in range(3))
    text.line(f"line = {writer.program()}")
    text.line(f"kept = tl.load({counts} + line)")
    text.line(f"to = {writer.result()} + tl.load({offsets} + line) * 3")
    with text.block(f"for start in range(0, kept, {_BLOCK}):"):
        text.line(f"at = start + tl.arange(0, {_BLOCK})")
        text.line("inside = at < kept")
        text.line(f"box = tl.load({chosen} + line * {text.dim(count)} + at, mask=inside, other=0)")
        text.line(f"tl.store(to + at * 3, line // {text.dim(classes)} + at * 0, mask=inside)")
        text.line(f"tl.store(to + at * 3 + 1, line % {text.dim(classes)} + at * 0, mask=inside)")
        text.line("tl.store(to + at * 3 + 2, box, mask=inside)")
    return writer.kernel(Launch((lines, 1, 1), 4), [INT64]).labelled("rows")

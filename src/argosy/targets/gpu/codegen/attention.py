"""Attention in one kernel: a program takes a tile of queries through all keys with a running softmax.

Scores never lie in memory. Source: T. Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with
IO-Awareness" (2022); the running form is that of `softmax`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import Dim, DimLike, Symbol, ceildiv, equal, floordiv, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.pointwise import Pointwise
from argosy.ops.shapes import product
from argosy.rewrite.attention import Attention, find_attentions
from argosy.targets.gpu.codegen.attention_mask import UNSEEN, Hidden, Said, hidden_keys
from argosy.targets.gpu.codegen.blocks import power_of_two
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.operands import matrix_way, multiply
from argosy.targets.gpu.codegen.summing import Tile
from argosy.targets.lowering.accesses import DeclinedError, axes_access, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = [
    "LOG2_E", "AttentionSpace", "attention_kernel", "attention_of", "power_of", "scaled_scores", "unrounded",
]  # fmt: skip

Order = tuple[int, ...] | None
LOG2_E: Final = 1.4426950408889634
_WHOLE: Final = 'whole = tl.where(total == 0, float("nan"), 1 / total)'
_FEW: Final = 32
"""Keys up to which weights are divided by their sum before they are rounded, as a model has it that rounds them."""
_WORDS: Final = {"and": " & ", "or": " | "}
_LARGE: Final = 1e4
"""Factors of scores that leave them finite, and such that are masks."""


def attention_of(module: Module, anchor: Instruction) -> Attention:
    """The attention whose last product is `anchor`."""
    found = next((each for each in find_attentions(module) if each.product is anchor), None)
    if found is None:
        raise DeclinedError("it is no attention")
    return found


class AttentionSpace:
    """The indices of a kernel: batch axes and the row of the root, keys, numbers of a head."""

    def __init__(self, writer: KernelWriter, attention: Attention) -> None:
        self._writer = writer
        self._attention = attention
        self.root = attention.product.result()
        self.scores = attention.scores.result()
        self.rows = self.root.shape[-2]
        self.keys = self.scores.shape[-1]
        self.batch = self.root.shape[:-2]

    def symbol(self, name: str, size: DimLike) -> DimLike:
        """A block variable as an index into an axis."""
        return symbol_dim(Symbol(f"@{name}", 0, size - 1 if isinstance(size, int) else None)) if size != 1 else 0

    def operand(self, value: Value, down: DimLike, across: DimLike) -> Access:
        """Queries, keys or values of a batch, at a place in their last two axes."""
        lead: list[DimLike] = []
        offset = len(self.batch) - (value.rank - 2)
        if offset < 0:
            raise DeclinedError("an operand of attention has more axes than its result")
        for axis, size in enumerate(value.shape[:-2]):
            whole = self.batch[offset + axis]
            lead.append(0 if size == 1 and whole != 1 else axis_index(offset + axis, whole))
        return axes_access(self.root.shape, value.shape, (*lead, down, across))

    def row(self, value: Value) -> Access:
        """A value of the rows of scores, at the row and the key of a tile."""
        lead = value.shape[:-1]
        if lead == self.root.shape[:-1]:
            indices: list[DimLike] = [axis_index(axis, size) for axis, size in enumerate(lead)]
        elif (heads := self._grouped(lead)) is not None:
            indices = [axis_index(axis, size) for axis, size in enumerate(lead[:-2])]
            indices += [heads, self.place(lead)]
        else:
            text = self._writer.text
            flat: DimLike = 0
            for axis, size in enumerate(self.root.shape[:-1]):
                flat = flat * size + axis_index(axis, size)
            name = text.fresh("row")
            text.line(f"{name} = {text.dim(flat)}")
            text.roots[name] = text.roots_of(flat)
            indices = []
            left = name
            for axis in reversed(range(len(lead))):
                if lead[axis] == 1:
                    indices.append(0)
                    continue
                own = text.derive(text.fresh("q"), f"{left} % {text.dim(lead[axis])}" if axis else left, left)
                if axis:
                    left = text.derive(text.fresh("left"), f"{left} // {text.dim(lead[axis])}", left)
                indices.append(self.symbol(own, lead[axis]))
            indices.reverse()
        key = self.symbol("n", self.keys) if value.shape[-1] != 1 else 0
        return axes_access(self.root.shape, value.shape, (*indices, key))

    def _grouped(self, lead: tuple[DimLike, ...]) -> DimLike | None:
        """The head of a row where rows [.., heads, S] are rows [.., K, groups S] of the result; None where not so."""
        own = self.root.shape[:-1]
        if len(lead) != len(own) or len(lead) < 2 or lead[:-2] != own[:-2]:
            return None
        group = floordiv(own[-1], lead[-1])
        if not isinstance(group, int) or not equal(group * lead[-1], own[-1]) or not equal(own[-2] * group, lead[-2]):
            return None
        text, row, axis = self._writer.text, axis_name(len(own) - 1), len(own) - 2
        if equal(lead[-1], 1):
            member = self.symbol(row, group)
        else:
            if "member" not in text.roots:
                text.derive("member", f"{row} // {text.dim(lead[-1])}", row)
            member = self.symbol("member", group)
        return axis_index(axis, own[-2]) * group + member

    def place(self, lead: tuple[DimLike, ...]) -> DimLike:
        """The query of a row where heads that share keys are rows of one product."""
        if equal(lead[-1], 1):
            return 0
        text, row = self._writer.text, axis_name(len(lead) - 1)
        if "query" not in text.roots:
            text.derive("query", f"{row} % {text.dim(lead[-1])}", row)
        return self.symbol("query", lead[-1])

    def hidden(self, number: str, high: int, *, by_all: bool = False) -> Hidden:
        """The keys that a mask hides from a tile of `high` rows, of which the variable `number` says which it is.

        With `by_all`, those that some row does not see.
        """
        source, text = present(self._attention.softmax, 0), self._writer.text
        lead = source.shape[:-1]
        text.roots["n"] = frozenset({"n"})
        first = symbol_dim(Symbol(f"@{number}", 0, None)) * high
        row = (axis_index(self.root.rank - 2, self.rows), first, first + (high - 1))
        if lead != self.root.shape[:-1]:
            if self._grouped(lead) is None:
                return Hidden()
            # A tile may go on with the first queries of the next head.
            count, start = text.dim(lead[-1]), text.let(f"{text.dim(first)} % {text.dim(lead[-1])}", "begin")
            whole = f"{start} + {high} <= {count}"
            least = symbol_dim(Symbol(f"@{text.let(f'tl.where({whole}, {start}, 0)', 'least')}", 0, None))
            most = text.let(f"tl.where({whole}, {start} + {high - 1}, {count} - 1)", "most_query")
            row = (self.place(lead), least, symbol_dim(Symbol(f"@{most}", 0, None)))
        key = self.symbol("n", self.keys)
        row = (row[0], *row[:0:-1]) if by_all else row
        return hidden_keys(self._writer.elements, self._attention, self.row(source), row, key)

    def changed(self, source: Value, hidden: Hidden) -> str:
        """What the softmax takes at the row and the key, once the scores are given."""
        elements = self._writer.elements
        for value, condition in hidden.said:
            elements.given[value] = elements.let(_said(elements, condition))
        found = elements.of(source, self.row(source))
        for value, _ in hidden.said:
            del elements.given[value]
        return found

    def first(self, hidden: Hidden, wide: int) -> str:
        """The first key, of those that steps of so many begin with, that a tile may see."""
        found = reduce(lambda least, each: f"tl.maximum({least}, {self._writer.text.dim(each)})", hidden.first, "0")
        return f"{found} // {wide} * {wide}" if hidden.first else found

    def limit(self, hidden: Hidden) -> str:
        """Up to which key a tile may see any."""
        text = self._writer.text
        found = reduce(lambda most, each: f"tl.minimum({most}, {text.dim(each)})", hidden.limit, text.dim(self.keys))
        return f"tl.maximum({found}, 0)"

    @contextmanager
    def keys_in_tiles(self, hidden: Hidden, wide: int) -> Iterator[None]:
        """The loop over the keys from `start` on that a tile of rows may see.

        Where rows that see nothing have a result, a tile with such a row goes on through all keys.
        """
        text, limit = self._writer.text, self._writer.text.dim(self.keys)
        begin = "0" if hidden.finite else self.first(hidden, wide)
        if not hidden.limit:
            with text.block(f"for start in range({begin}, {limit}, {wide}):"):
                yield
            return
        seen = text.let(self.limit(hidden), "seen")
        if not hidden.finite:
            with text.block(f"for start in range({begin}, {seen}, {wide}):"):
                yield
            return
        text.line(f"begin = {seen} * 0")
        text.line(f"end = {seen}")
        with text.block("for _ in range(0, 2):"):
            with text.block(f"for start in range(begin, end, {wide}):"):
                yield
            text.line(f"begin = ({seen} + {wide - 1}) // {wide} * {wide}")
            text.line(f"end = tl.where(tl.max((most <= {UNSEEN}).to(tl.int32)) > 0, {limit}, begin)")


def _said(elements: Elements, condition: Said) -> str:
    """The Triton of a condition on places."""
    if condition.term is not None:
        more, less = (elements.text.dim(_of_sign(condition.term, sign)) for sign in (1, -1))
        return f"({more} > {less})"
    parts = [_said(elements, part) for part in condition.parts]
    return f"({parts[0]} == 0)" if condition.primitive == "not" else f"({_WORDS[condition.primitive].join(parts)})"


def _of_sign(term: DimLike, sign: int) -> DimLike:
    """The parts of a sum with factors of a sign, with those factors' sizes."""
    if isinstance(term, int):
        return max(term * sign, 0)
    kept = tuple((atoms, factor * sign) for atoms, factor in term.terms if factor * sign > 0)
    return sum((Dim((each,)) if each[0] else each[1] for each in kept), 0)


def scaled_scores(attention: Attention) -> tuple[Value | None, float]:
    """The scores times a number, and that number, where what follows may as well be done to the scores alone.

    So it is of what leaves them or puts -inf in their place. None and 1 where it is not so.
    """
    inside = attention.steps
    value = present(attention.softmax, 0)
    while value.instruction in inside and isinstance(value.instruction.op, Pointwise):
        primitive, operands = value.instruction.op.formula.primitive, value.instruction.operands
        numbers = [None if operand is None else _number(operand) for operand in operands]
        if primitive == "mul":
            for number, other in zip(numbers, reversed(operands), strict=True):
                if number is not None and 0 < number < _LARGE and other is not None and _is_scored(other, attention):
                    return value, number
            return None, 1.0
        branches = [place for place in (1, 2) if primitive == "select" and numbers[place] == -float("inf")]
        other = operands[3 - branches[0]] if len(branches) == 1 else None
        if other is None:
            return None, 1.0
        value = other
    return (value, 1.0) if value == attention.scores.result() else (None, 1.0)


def _is_scored(value: Value, attention: Attention) -> bool:
    """Whether a value is the scores, perhaps in another type."""
    while value.instruction in attention.steps and isinstance(value.instruction.op, Pointwise):
        if [step.primitive for step in value.instruction.op.formula.steps] != ["convert"]:
            return False
        value = present(value.instruction, 0)
    return value == attention.scores.result()


def _number(value: Value) -> float | None:
    literal = value.constant
    return float(literal.item()) if literal is not None and literal.size == 1 else None


def power_of(elements: Elements, value: str, factor: float, shift: str, *, exact: bool) -> str:
    """The Triton of e to the power of what a score is above the greatest, of which `shift` is the variable.

    Not `exact`, of a factor times that, where `shift` is the greatest times the factor and log2(e).
    """
    if not elements.short:
        return elements.exp(f"{value} - {shift}")
    by = factor * LOG2_E
    return f"tl.exp2(({value} - {shift}) * {by})" if exact else f"tl.exp2(tl.fma({value}, {by}, -{shift}))"


def attention_kernel(
    module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: Tile, *, tf32: bool = False
) -> Kernel:
    """The kernel of a module whose anchor is an attention's last product. `tile.columns` are keys at a time."""
    attention = attention_of(module, anchor)
    queries, keys = present(attention.scores, 0), present(attention.scores, 1)
    values, root = present(anchor, 1), module.results[0]
    head, width = queries.shape[-1], values.shape[-1]
    if not isinstance(head, int) or not isinstance(width, int):
        raise DeclinedError("the numbers of a head are symbolic")
    if root.shape != anchor.result().shape:
        raise DeclinedError("its result is moved")
    writer = KernelWriter(module, orders, (order,))
    text, elements = writer.text, writer.elements
    space = AttentionSpace(writer, attention)
    if space.scores.rank < 2 or root.rank < 2 or product(space.scores.shape[:-1]) != product(root.shape[:-1]):
        raise DeclinedError("its scores have other rows than its result")
    high, wide = tile.rows, tile.columns
    row, column = axis_name(root.rank - 2), axis_name(root.rank - 1)
    deep, across = max(power_of_two(head), 16), max(power_of_two(width), 16)
    writer.lanes = (row, column)
    tiles, mark = writer.program(), text.mark()
    if space.batch:
        decompose(writer, writer.program(1), space.batch)
    _axis(writer, row, f"{tiles} * {high} + ", high, "[:, None]", space.rows, high)
    _axis(writer, "d", "", deep, "[None, :]", head, deep)
    kinds = (queries.dtype, keys.dtype)
    way, mixed = matrix_way(*kinds, FLOAT32), matrix_way(values.dtype, values.dtype, FLOAT32)
    if way is None or mixed is None or not queries.dtype.is_float:
        raise DeclinedError(f"no matrix instruction multiplies {kinds[0]} and {kinds[1]}")
    at = space.operand(queries, space.symbol(row, space.rows), space.symbol("d", head))
    q = way.tile(elements, 0, queries, at, (high, deep), "" if head == deep else "d_inside", (row, "d"))
    text.line(f'most = tl.full([{high}, 1], float("-inf"), tl.float32)')
    text.line(f"total = tl.zeros([{high}, 1], tl.float32)")
    text.line(f"acc = tl.zeros([{high}, {across}], tl.float32)")
    source = present(attention.softmax, 0)
    scaled, factor = scaled_scores(attention) if elements.short else (None, 1.0)
    hidden = space.hidden(tiles, high)
    if hidden.limit and not hidden.first:  # the last rows see most, and begin first
        text.insert(mark, [f"{tiles} = {text.dim(ceildiv(space.rows, high))} - 1 - {tiles}"])
    at_once = isinstance(space.keys, int) and space.keys <= min(wide, _FEW)
    with space.keys_in_tiles(Hidden() if at_once else hidden, wide), elements.scope():
        text.root("n", f"start + tl.arange(0, {wide})[None, :]")
        text.root("nt", f"start + tl.arange(0, {wide})[:, None]")
        text.root("dt", f"tl.arange(0, {deep})[:, None]")
        text.root(column, f"tl.arange(0, {across})[None, :]")
        ragged = not (isinstance(space.keys, int) and space.keys % wide == 0)
        masks = len(elements.masks)
        extents = (("n", space.keys, wide), ("nt", space.keys, wide), ("dt", head, deep), (column, width, across))
        for name, extent, size in extents:
            if not (isinstance(extent, int) and extent % size == 0):
                text.line(f"{name}_inside = {name} < {text.dim(extent)}")
                elements.masks.append((f"{name}_inside", text.roots[name]))
        at = space.operand(keys, space.symbol("dt", head), space.symbol("n", space.keys))
        k = way.tile(elements, 1, keys, at, (deep, wide), "" if head == deep else "dt_inside", ("dt", "n"))
        zero = text.let(f"tl.zeros([{high}, {wide}], tl.float32)")
        elements.given[scaled or attention.scores.result()] = text.let(multiply(q, k, zero, way, deep, tf32=tf32))
        scores = space.changed(source, hidden)
        if ragged:
            scores = text.let(f'tl.where(n_inside, {scores}, float("-inf"))')
        scores = text.let(f"tl.broadcast_to({scores}, [{high}, {wide}])")
        # A NaN among the scores makes one of the powers and so of their sum, whatever the greatest is.
        text.line(f"higher = tl.maximum(most, tl.max({scores}, 1, keep_dims=True))")
        text.line('safe = tl.where(higher == float("-inf"), tl.zeros_like(higher), higher)')
        text.line(f"shift = safe * {factor * LOG2_E}" if scaled else "shift = safe")
        text.line(f"powers = {power_of(elements, scores, factor, 'shift', exact=scaled is None)}")
        text.line(f"kept = {power_of(elements, 'most', factor, 'shift', exact=scaled is None)}")
        text.line("total = total * kept + tl.sum(powers, 1, keep_dims=True)")
        weights = unrounded(present(anchor, 0))
        if at_once:
            text.line(_WHOLE)
            elements.given[attention.softmax.result()] = text.let("powers * whole")
            rounded = elements.of(weights, space.row(weights))
        else:
            rounded = "powers"
        at = space.operand(values, space.symbol("nt", space.keys), space.symbol(column, width))
        v = mixed.tile(elements, 1, values, at, (wide, across), "nt_inside" if ragged else "", ("nt", column))
        text.line("acc = acc * kept")
        # Weights are rounded to the values' type, as matrix instructions take both in one.
        rounded = f"{rounded}.to(tl.{mixed.types[0]})"
        text.line(f"acc = {multiply(rounded, v, 'acc', mixed, wide, tf32=tf32)}")
        text.line("most = higher")
        del elements.masks[masks:]
    text.root(column, f"tl.arange(0, {across})[None, :]")
    if width != across:
        text.line(f"{column}_inside = {column} < {width}")
        elements.masks.append((f"{column}_inside", text.roots[column]))
    writer.release()
    if at_once:
        elements.given[anchor.result()] = "acc"
    else:
        # What follows the softmax scales whole rows of it, and may put 0 for those of a row without keys, which is NaN.
        text.line(_WHOLE)
        with elements.scope():
            elements.given[attention.softmax.result()] = "whole"
            text.line("n = tl.zeros([1, 1], tl.int32)")
            text.roots["n"] = frozenset()
            scale = elements.of(weights, space.row(weights))
        elements.given[anchor.result()] = text.let(f"acc * {scale}")
    place = maps.identity(root.shape)
    writer.store(elements.of(root, place), root.dtype, place)
    grid = (ceildiv(space.rows, high), product(space.batch), 1)
    return writer.kernel(Launch(grid, tile.warps, tile.stages))


def _axis(writer: KernelWriter, name: str, base: str, count: int, along: str, extent: DimLike, size: int) -> None:
    text = writer.text
    text.root(name, f"{base}tl.arange(0, {count}){along}")
    if not (isinstance(extent, int) and extent % size == 0):
        text.line(f"{name}_inside = {name} < {text.dim(extent)}")
        writer.elements.masks.append((f"{name}_inside", text.roots[name]))


def unrounded(weights: Value) -> Value:
    """The weights before they are converted for the product: what scales its sums is not to be rounded so."""
    made = weights.instruction
    while isinstance(made.op, Pointwise) and [step.primitive for step in made.op.formula.steps] == ["convert"]:
        weights = present(made, 0)
        made = weights.instruction
    return weights

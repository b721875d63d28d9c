"""Attention on devices whose copy engine fills shared memory and whose warp groups multiply from it (Hopper).

One warp of a program does nothing but ask for queries, keys and values. Two warp groups take half of a tile's rows
each, and turns: while one multiplies, the other finds the powers of its scores; and the values of one step are
multiplied while the scores of the next become powers. The text is Gluon, Triton's language of layouts. Source: J. Shah
et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision" (2024).

Keys and values lie in rings in shared memory, queries in a room for each group. `full` and `empty` say of each place
that it was filled, or read by both groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, bounds, floordiv, mod, substitute, symbol_dim
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ops.joining import Split
from argosy.ops.shapes import product
from argosy.rewrite.view_chain import view_access
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.attention import (
    LOG2_E,
    AttentionSpace,
    attention_of,
    power_of,
    scaled_scores,
    unrounded,
)
from argosy.targets.gpu.codegen.attention_mask import Hidden
from argosy.targets.gpu.codegen.kernel import WAIT, Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.pipelined import in_gluon
from argosy.targets.gpu.codegen.pipelined_attention_text import COPIED, PIN, TEXT
from argosy.targets.gpu.codegen.prelude import prelude_for
from argosy.targets.gpu.codegen.tensor_map import TensorMap
from argosy.targets.lowering.accesses import DeclinedError, present, split_access
from argosy.targets.lowering.kernel_text import axis_name, strides_of

__all__ = ["GROUP_ROWS", "FlashTile", "pipelined_attention"]

GROUP_ROWS: Final = 64
"""Rows of a group: as many as its instructions multiply at once."""
_GROUPS: Final = 2
_BOTH: Final = _GROUPS * GROUP_ROWS
_WARPS: Final = 4
_REGISTERS: Final = (240, 24)
"""Registers of a thread of the second group and of the copying warp; the first group keeps the rest, 240 too."""
_WIDTHS: Final = (64, 128)
Order = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class FlashTile:
    """Keys of a step, steps in the rings, whether groups take turns, and whether a step's powers wait for no values.

    Where it is `split`, steps that a mask hides no key of are done without it.
    """

    keys: int
    stages: int
    turns: bool = True
    pinned: bool = True
    split: bool = False

    def shared(self, width: int) -> int:
        """Bytes of shared memory for heads of so many numbers of 16 bits."""
        return (_GROUPS * GROUP_ROWS + 2 * self.stages * self.keys) * width * 2


def pipelined_attention(
    module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: FlashTile, programs: int
) -> Kernel:
    """The kernel of a module whose anchor is an attention's last product, on so many `programs`."""
    return _Attention(module, anchor, orders, order, tile).kernel(programs)


class _Attention:
    """One kernel in the making."""

    def __init__(
        self, module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: FlashTile
    ) -> None:
        self._attention = attention_of(module, anchor)
        self._anchor, self._tile, self._orders = anchor, tile, orders
        self._queries, self._keys = present(self._attention.scores, 0), present(self._attention.scores, 1)
        self._values, self._root = present(anchor, 1), module.results[0]
        self._kind = self._queries.dtype
        self._writer = KernelWriter(module, orders, (order,))
        self._space = AttentionSpace(self._writer, self._attention)
        self._check()
        self._width = int(self._values.shape[-1])

    def _check(self) -> None:
        space = self._space
        if self._root.shape != self._anchor.result().shape:
            raise DeclinedError("its result is moved")
        if self._kind.name not in ("float16", "bfloat16") or {self._keys.dtype, self._values.dtype} != {self._kind}:
            raise DeclinedError("its operands are not of 16 bits")
        if not self._writer.elements.short:
            raise DeclinedError("its result is not of 16 bits")
        width = self._values.shape[-1]
        if width not in _WIDTHS or self._queries.shape[-1] != width:
            raise DeclinedError(f"its heads are not of {_WIDTHS} numbers")
        if not all(isinstance(size, int) for size in (space.rows, space.keys, *space.batch)) or self._writer.text.wide:
            raise DeclinedError("its sizes are symbolic, or very large")
        if space.rows % _BOTH or space.keys % self._tile.keys:
            raise DeclinedError("tiles do not fill its rows and keys")
        if present(self._attention.softmax, 0).shape[:-1] != self._root.shape[:-1]:
            raise DeclinedError("its scores have other axes than its result")

    def kernel(self, programs: int) -> Kernel:
        """Write it."""
        tile, text, space, module = self._tile, self._writer.text, self._space, self._writer.module
        down = int(floordiv(space.rows, _BOTH))
        tiles = int(product(space.batch)) * down
        mark = text.mark()
        hidden = space.hidden("down", _BOTH)
        if text.take(mark):
            raise DeclinedError("its mask depends on data")
        # Of tiles that a causal mask leaves more or less to do, pairs have the same.
        halves = 2 if hidden.limit and down % 2 == 0 else 1
        place = self._place(down, halves)
        inside = [name for name in (axis_name(axis) for axis in range(len(space.batch))) if name in text.roots]
        first, start = symbol_dim(Symbol("@down", 0, None)) * _BOTH, symbol_dim(Symbol("@start", 0, None))
        q = self._matrix(self._queries, first, GROUP_ROWS, int(space.rows))
        k = self._matrix(self._keys, start, tile.keys, int(space.keys), turned=True)
        v = self._matrix(self._values, start, tile.keys, int(space.keys))
        found = list(dict.fromkeys((q[0], k[0], v[0])))
        q_map, k_map, v_map = (f"map{found.index(each[0])}" for each in (q, k, v))
        kinds = [parameter.result().dtype for parameter in module.parameters] + [self._root.dtype]
        names = [f"p{number}" for number in range(len(kinds))]
        scaled, factor = scaled_scores(self._attention) if self._writer.elements.short else (None, 1.0)
        split = tile.split and self._is_plain_elsewhere(hidden, scaled)
        bounds = self._bounds(hidden, split=split)
        if text.symbols or text.faults:
            raise DeclinedError("its sizes are symbolic")
        width = self._kind.bits // 8
        programs = min(programs, tiles // halves)
        words = {
            "units": tiles // halves, "halves": halves, "programs": programs,
            "place": _lines(3, place), "bounds": _lines(3, bounds),
            "groups": _GROUPS, "rows": GROUP_ROWS, "both": _BOTH, "keys": tile.keys, "stages": tile.stages,
            "width": self._width, "q_bytes": GROUP_ROWS * self._width * width,
            "step_bytes": tile.keys * self._width * width,
            "q_row": q[1], "q_column": q[2], "k_row": k[1], "k_column": k[2], "v_row": v[1], "v_column": v[2],
            "q_map": q_map, "k_map": k_map, "v_map": v_map, "kind": scalar.tl_type(self._kind),
            "maps": ", ".join(f"map{number}" for number in range(len(found))), "pointers": ", ".join(names),
            "wait": WAIT, "copied": COPIED, "given": ", ".join([*names, "first_row", *inside]),
            "scores_layout": _layout(tile.keys), "sums_layout": _layout(self._width),
            "changes": _lines(2, self._changes(scaled, hidden)),
            "shift": f"(safe * {factor * LOG2_E})[:, None]" if scaled else "safe[:, None]",
            "powers": power_of(self._writer.elements, "changed", factor, exact=scaled is None, shift="shift"),
            "kept": power_of(self._writer.elements, "most", factor, exact=scaled is None,
                             shift=f"(safe * {factor * LOG2_E})" if scaled else "safe"),
            "finish": _lines(3, self._finish()),
            **self._turns(),
            "kinds": 2 if split else 1, "begins": "(hiding if plain else 1)" if split else "1",
            "ends": "(steps if plain else hiding)" if split else "steps",
            "pin": _lines(5, [PIN] if tile.pinned else []),
            "warps": _WARPS, "registers": ", ".join(map(str, _REGISTERS)),
        }  # fmt: skip
        body = TEXT.format(**words)
        functions = prelude_for(body)
        types = tuple(scalar.pointer_type(kind) for kind in kinds)
        return Kernel(
            f"{functions}\n{body}" if functions else body, types, (), "i32", Launch((programs, 1, 1), _WARPS),
            maps=tuple(found), language="gluon",
        )  # fmt: skip

    def _place(self, down: int, halves: int) -> list[str]:
        """Lines from the `number` and `half` of a tile to its place: `down` the rows, and the indices of its matrix."""
        text = self._writer.text
        mark = text.mark()
        each = down // halves
        text.line(f"down = number % {each}")
        if halves > 1:
            text.line(f"down += half * ({down - 1} - 2 * down)")
        if self._space.batch:
            decompose(self._writer, text.let(f"number // {each}", "matrix"), self._space.batch)
        return text.take(mark)

    def _is_plain_elsewhere(self, hidden: Hidden, scaled: Value | None) -> bool:
        """Whether a mask is one comparison, which puts -inf in the place of scores."""
        source = present(self._attention.softmax, 0)
        conditions = [value for value, said in hidden.said if said.term is not None]
        one = len(hidden.limit) == len(hidden.said) == len(conditions) == 1 and not hidden.first and not hidden.finite
        made = source.instruction
        return one and scaled is not None and made.op.name == "pointwise" and {*made.operands} >= {scaled, *conditions}

    def _bounds(self, hidden: Hidden, *, split: bool) -> list[str]:
        """Lines that say which steps a tile takes, the `last` first, and where `split` how many have hidden keys."""
        tile, space = self._tile, self._space
        end = int(floordiv(space.keys, tile.keys))
        if hidden.finite or not (hidden.first or hidden.limit):
            return [f"last = {end - 1}", f"steps = {end}"]
        all_see = space.limit(space.hidden("down", _BOTH, by_all=True))
        return [
            f"last = tl.maximum({space.limit(hidden)} - 1, 0) // {tile.keys}",
            f"first = {space.first(hidden, tile.keys)} // {tile.keys}",
            "steps = tl.maximum(last - first + 1, 1)",
            *([f"hiding = tl.minimum(tl.maximum(last - {all_see} // {tile.keys} + 1, 1), steps)"] if split else []),
        ]

    def _matrix(
        self, value: Value, first: DimLike, high: int, rows: int, *, turned: bool = False
    ) -> tuple[TensorMap, str, str]:
        """The map of an operand, and in it the row and column of a tile that begins with row `first`."""
        writer, elements = self._writer, self._writer.elements
        down, across = Symbol("@down_row", 0, rows - 1), Symbol("@across", 0, self._width - 1)
        places = (symbol_dim(across), symbol_dim(down)) if turned else (symbol_dim(down), symbol_dim(across))
        access: Access = self._space.operand(value, *places)
        while not isinstance(value.instruction.op, Parameter):
            instruction = value.instruction
            step = (
                split_access(instruction, value.index)
                if isinstance(instruction.op, Split)
                else view_access(instruction)
            )
            if step is None or step.conditions:
                raise DeclinedError("its operands are computed")
            access, value = elements.compose(access, step), present(instruction, 0)
        parameter = list(writer.module.parameters).index(value.instruction)
        total: DimLike = 0
        for index, stride in zip(access.indices, strides_of(access.source, self._orders[parameter]), strict=True):
            total = index * stride + total
        rest = substitute(total, {down.name: 0, across.name: 0})
        pitch = substitute(total, {down.name: 1, across.name: 0}) - rest
        whole = product(value.shape)
        if not isinstance(pitch, int) or not isinstance(whole, int) or pitch <= 0 or whole % pitch:
            raise DeclinedError("the rows of its operands do not lie evenly")
        if symbol_dim(down) * pitch + symbol_dim(across) + rest != total:
            raise DeclinedError("the numbers of its heads do not lie beside each other")
        column = mod(rest, pitch)
        upper = bounds(column)[1]
        if upper is None or upper + self._width > pitch:
            raise DeclinedError("its heads do not lie in rows")
        box = TensorMap(parameter, value.dtype, (whole // pitch, pitch), (high, self._width))
        return box, writer.text.dim(floordiv(rest, pitch) + first), writer.text.dim(column)

    def _changes(self, scaled: Value | None, hidden: Hidden) -> list[str]:
        """Lines from `scores` to what the softmax takes, `changed`."""
        text, elements, space = self._writer.text, self._writer.elements, self._space
        source = present(self._attention.softmax, 0)
        mark = text.mark()
        with elements.scope():
            text.root(axis_name(self._root.rank - 2), f"first_row + tl.arange(0, {GROUP_ROWS})[:, None]")
            text.root("n", f"start + tl.arange(0, {self._tile.keys})[None, :]")
            elements.given[scaled or self._attention.scores.result()] = "scores"
            text.line(f"changed = {space.changed(source, hidden)}")
            del elements.given[scaled or self._attention.scores.result()]
        return in_gluon(text.take(mark), "layout")

    def _finish(self) -> list[str]:
        """Lines from `acc` to memory."""
        writer, text, elements, space = self._writer, self._writer.text, self._writer.elements, self._space
        mark = text.mark()
        row, column = axis_name(self._root.rank - 2), axis_name(self._root.rank - 1)
        with elements.scope():
            text.root(row, f"first_row + tl.arange(0, {GROUP_ROWS})[:, None]")
            text.root(column, f"tl.arange(0, {self._width})[None, :]")
            writer.lanes = (row, column)
            text.line("n = 0")
            text.roots["n"] = frozenset()
            elements.given[self._attention.softmax.result()] = "whole"
            weights = unrounded(present(self._anchor, 0))
            scale = elements.of(weights, space.row(weights))
            elements.given[self._anchor.result()] = text.let(f"acc * {scale}")
            place = maps.identity(self._root.shape)
            writer.store(elements.of(self._root, place), self._root.dtype, place)
        return in_gluon(text.take(mark), "summed")

    def _turns(self) -> dict[str, str]:
        """Lines by which a group waits for its turn to multiply, and gives it to the other one."""
        own = ["hopper.mbarrier.wait(turns.index(OWN), swap)", "swap ^= 1"] if self._tile.turns else []
        other = ["hopper.mbarrier.arrive(turns.index(1 - OWN))"] if self._tile.turns else []
        return {
            "own_turn": _lines(3, own), "other_turn": _lines(3, other),
            "own_turn_inside": _lines(5, own), "other_turn_inside": _lines(5, other),
        }  # fmt: skip


def _layout(width: int) -> str:
    return f"tl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[{_WARPS}, 1], instr_shape=[16, {width}, 16])"


def _lines(depth: int, lines: Sequence[str]) -> str:
    return "\n".join("    " * depth + line for line in lines)

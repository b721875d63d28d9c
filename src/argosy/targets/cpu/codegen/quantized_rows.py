"""What reads panels of codes: rows times the codes as they come, and a panel of floats for many rows.

Codes become floats without a conversion. In the low bits of the fraction of 2^23 a code is exactly that much above
it, at bit p of the fraction of 2^(23 - p). So `(word & mask) | power`, less `power + zero point`, is the code less
its zero point, and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from argosy.targets.cpu.codegen.kernel import ENTRY
from argosy.targets.cpu.codegen.quantized_panels import QuantizedPanels
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import load_lanes

__all__ = ["rows_function", "unpack_function"]

_FRACTION: Final = 23
_BIAS: Final = 127
"""Bits of the fraction of a float32, and the bias of its exponent."""
_PLACES: Final = 4
"""Codes that are taken from a word before it is shifted: each place has constants of its own."""
_CHAINS: Final = 4
"""Partial sums in flight."""

_Use = Callable[[int, int, str], Iterator[str]]
"""C that takes `w<v>`, vector v of the row of codes less their zero points at a place of the record, `number` along."""


def rows_function(panels: QuantizedPanels, offsets: Sequence[str]) -> str:
    """C of `few<n>(a, b, tile, depth, more)`: n rows, at `offsets` from `a`, times the records from `b` on.

    It sums `depth` numbers, where `more` onto what `tile` holds, which is `[n][vectors]`.
    """
    vectors, rows = panels.tile.vectors, len(offsets)
    # The sum of a record is scaled once, where there are registers for it beside the whole sum.
    apart = 4 * rows * vectors * panels.width <= panels.registers
    ways = max(1, _CHAINS // (rows * vectors * panels.width)) if apart else 1
    totals = [(row, v) for row in range(rows) for v in range(vectors)]

    def use(number: int, v: int, place: str) -> Iterator[str]:
        weight = f"w{v}" if apart else f"(w{v} * scale{v})"
        for row, offset in enumerate(offsets):
            total = f"c{number % ways}_{row}_{v}" if apart else f"t{row}_{v}"
            yield f"{total} = muladd((float32x16)a[{offset} + {place}], {weight}, {total});"

    def record(count: int) -> list[str]:
        lines = [f"float32x16 c{way}_{row}_{v} = 0;" for way in range(ways) for row, v in totals] if apart else []
        lines += _record(panels, count, use)
        for row, v in totals if apart else []:
            partial = " + ".join(f"c{way}_{row}_{v}" for way in range(ways))
            lines.append(f"t{row}_{v} = muladd({partial}, scale{v}, t{row}_{v});")
        return lines

    return _function(
        f"few{rows}(const float32 *restrict a, const uint8 *restrict b, float32x16 *restrict tile, "
        "int64 depth, int64 more)",
        [
            *(f"float32x16 t{row}_{v} = more ? tile[{row * vectors + v}] : (float32x16)0;" for row, v in totals),
            *_records(panels, record, f"a += {panels.unit}"),
            *(f"tile[{row * vectors + v}] = t{row}_{v};" for row, v in totals),
        ],
    )


def unpack_function(panels: QuantizedPanels) -> str:
    """C of `unpack(b, to, depth)`: `depth` rows of a panel of floats from the records from `b` on."""
    columns = panels.tile.columns

    def use(number: int, v: int, place: str) -> Iterator[str]:
        del number
        yield f"*(float32x16 *)(to + ({place}) * {columns} + {v * BLOCK}) = w{v} * scale{v};"

    return _function(
        "unpack(const uint8 *restrict b, float32 *restrict to, int64 depth)",
        _records(panels, lambda count: _record(panels, count, use), f"to += {panels.unit * columns}"),
    )


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"static __attribute__((noinline)) void {ENTRY}_{head} {{", *lines, "}", ""])


def _records(panels: QuantizedPanels, record: Callable[[int], list[str]], move: str) -> list[str]:
    """All whole records of `depth`, and what is left of the last one of the panel."""
    unit, rest = panels.unit, panels.depth % panels.unit
    lines = []
    if panels.depth >= unit:
        lines += [f"for (int64 record = depth / {unit}; record > 0; --record, b += {panels.record}, {move}) {{"]
        lines += [*record(unit), "}"]
    if rest:
        lines += [f"if (depth % {unit}) {{", *record(rest), "}"]
    return lines


def _record(panels: QuantizedPanels, count: int, use: _Use) -> list[str]:
    """The first `count` numbers of the record at `b`."""
    vectors, kind = range(panels.tile.vectors), panels.scale.dtype
    places = _places(panels)
    lines = []
    for v in vectors:
        at = v * BLOCK * kind.bits // 8
        lines.append(f"const float32x16 scale{v} = {load_lanes(kind, _pointer(kind.bits, at))};")
        if panels.one_zero is None:
            zeros = f"uint8_to_float32x16(load_uint8x16(b + {panels.zeros_at + v * BLOCK}))"
            lines.append(f"const float32x16 zero{v} = {zeros};")
        for place, bit in enumerate(places):
            power = 1 << (_FRACTION - bit)
            below = f"{power}.0f + zero{v}" if panels.one_zero is None else f"(float32x16){power + panels.one_zero}.0f"
            lines.append(f"const float32x16 below{place}_{v} = {below};")
    whole, rest = divmod(count, panels.per_word)
    if whole:
        lines.append(f"for (int64 word = 0; word < {whole}; ++word) {{")
        lines += [*_word(panels, "word", panels.per_word, use), "}"]
    if rest:
        lines += ["{", *_word(panels, str(whole), rest, use), "}"]
    return lines


def _pointer(bits: int, at: int) -> str:
    return f"(const {'float32' if bits == 32 else 'uint16'} *)(b + {at})"


def _places(panels: QuantizedPanels) -> range:
    """The bits at which codes are taken from a word before it is shifted."""
    return range(0, min(_PLACES * panels.bits, _FRACTION - panels.bits + 1), panels.bits)


def _word(panels: QuantizedPanels, word: str, count: int, use: _Use) -> Iterator[str]:
    """The first `count` codes of a word of every column."""
    bits, places = panels.bits, _places(panels)
    mask, step = (1 << bits) - 1, len(places) * bits
    for v in range(panels.tile.vectors):
        at = f"{panels.words_at + v * BLOCK * 4} + {word} * {panels.tile.columns * 4}"
        yield f"uint32x16 x{v} = (uint32x16)load_int32x16((const int32 *)(b + {at}));"
    for number in range(count):
        place = number % len(places)
        if number and not place:
            yield from (f"x{v} >>= {step};" for v in range(panels.tile.vectors))
        yield "{"
        for v in range(panels.tile.vectors):
            power = (_BIAS + _FRACTION - places[place]) << _FRACTION
            raised = f"(float32x16)((x{v} & {mask << places[place]}u) | {power}u)"
            yield f"const float32x16 w{v} = {raised} - below{place}_{v};"
            yield from use(number, v, f"{word} * {panels.per_word} + {number}")
        yield "}"

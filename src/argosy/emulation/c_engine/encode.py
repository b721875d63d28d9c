"""A decoded kernel as the arrays that the C engine reads. Layouts and numbers are those of its headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.archs import generation
from argosy.emulation.checks.counters import COPIES, raised, waited
from argosy.emulation.decode import FLOW, Instruction, Program
from argosy.emulation.exchanges import Exchange, exchange_sources
from argosy.emulation.matrix import SCALE_BLOCK, MatrixShape
from argosy.emulation.memory_forms import MemoryForm
from argosy.emulation.modifiers import Selection, constant_bits, packed_constant, picks, selection
from argosy.emulation.moves import move_sources, swizzle_sources
from argosy.emulation.operands import Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.table import Operation, width

__all__ = ["FAULT", "INSTRUCTION", "LAUNCH", "OPERAND", "SHAPE", "Encoded", "encode"]

OPERAND: Final = np.dtype(
    [
        ("kind", "u1"),
        ("high", "u1"),
        ("negate", "u1"),
        ("absolute", "u1"),
        ("number", "u2"),
        ("count", "u2"),
        ("value", "u8"),
    ],
    align=True,
)
INSTRUCTION: Final = np.dtype(
    [
        ("unit", "u1"), ("sources", "u1"), ("results", "u1"), ("sets_exec", "u1"), ("what", "u2"), ("second", "u2"),
        ("target", "i4"), ("source", OPERAND, 5), ("result", OPERAND, 2), ("source_type", "u1", 4),
        ("result_type", "u1", 4), ("op_sel", "u1"), ("op_sel_hi", "u1"), ("neg_lo", "u1"), ("neg_hi", "u1"),
        ("clamp", "u1"), ("clears", "u1"), ("picks_high", "u1"), ("factor", "u1"), ("select", "u1", 2),
        ("extend", "u1", 2), ("move", "i2"), ("zeroes", "u1"), ("fetches_off", "u1"), ("space", "u1"), ("store", "u1"),
        ("bytes", "u1"), ("is_signed", "u1"), ("half", "u1"), ("pairs", "u1"), ("atomic", "u1"), ("atomic_kind", "u1"),
        ("returns", "u1"), ("flags", "u1"), ("part", "u1"), ("unused", "u1"), ("into", "u1"),
        ("raises", "u1"), ("offset", "i8", 2),
    ],
    align=True,
)  # fmt: skip
MOVE: Final = np.dtype([("source", "i1", 64), ("written", "u1", 64)])
FACTOR: Final = np.dtype([("kind", "i4"), ("bits", "i4"), ("elements", "i4"), ("places", "u8")], align=True)
SHAPE: Final = np.dtype(
    [
        ("rows", "i4"), ("k", "i4"), ("out", "i4"), ("registers", "i4"), ("block", "i4"),
        ("a", FACTOR), ("b", FACTOR), ("places", "u8"),
    ],
    align=True,
)  # fmt: skip
LAUNCH: Final = np.dtype(
    [
        ("lanes", "u4"), ("waves", "u4"), ("vectors", "u4"), ("accumulators", "u4"), ("private_size", "u4"),
        ("lds_size", "u4"), ("threads", "u4"), ("kernarg_at", "u4"), ("ids_at", "u4"),
        ("ids_in_traps", "u4"), ("id_axes", "u4"), ("kernarg", "u8"), ("grid", "u4", 3), ("poison", "u4"),
        ("looks", "u4"), ("copies", "u4"),
    ],
    align=True,
)  # fmt: skip
FAULT: Final = np.dtype(
    [
        ("code", "i4"),
        ("place", "i4"),
        ("lane", "i4"),
        ("wave", "i4"),
        ("address", "u8"),
        ("size", "u8"),
        ("group", "u8"),
    ],
    align=True,
)

_KINDS: Final = {"v": 0, "a": 1, "s": 2, "constant": 3, "scc": 4, "off": 5}
_NOTHING, _VECTOR, _SCALAR, _ACCESS, _MATRIX, _MOVE, _FLOW, _WAIT = range(8)
_NO_WAIT: Final = 0xFFFF
_TYPES: Final = {
    "mask": 3, "scc": 4, "exec32": 5, "exec64": 6, "mix": 7, "high": 8, "high16": 8, "pair": 9, "mixb": 10,
    "pf16": 11, "pbf16": 11, "pu16": 11, "pi16": 11, "pf32": 12, "pb32": 13, "k16": 1, "ku16": 1,
}  # fmt: skip
_FLOWS: Final = {
    "s_branch": 0, "s_cbranch_scc0": 1, "s_cbranch_scc1": 2, "s_cbranch_vccz": 3, "s_cbranch_vccnz": 4,
    "s_cbranch_execz": 5, "s_cbranch_execnz": 6, "s_endpgm": 7, "s_barrier": 8, "s_barrier_signal": 9,
    "s_barrier_wait": 10, "s_barrier_signal_isfirst": 11,
}  # fmt: skip
_MOVES: Final = (
    "v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32",
    "v_permlane16_b32", "v_permlanex16_b32", "v_permlane64_b32", "v_permlane32_swap_b32", "v_permlane16_swap_b32",
    "v_swap_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32", "ds_bpermute_b32",
    "ds_permute_b32", "ds_swizzle_b32",
)  # fmt: skip
_SPACES: Final = {"global": 0, "buffer": 1, "scratch": 2, "lds": 3, "scalar": 4}
_INTO: Final = {"": 0, "m0": 1, "lanes": 2}
_ATOMICS: Final = {
    "": 0, "add": 1, "sub": 2, "min": 3, "max": 4, "and": 5, "or": 6, "xor": 7, "swap": 8, "cmpswap": 9, "pk_add": 10,
    "inc": 11, "dec": 12,
}  # fmt: skip
_ATOMIC_KINDS: Final = {
    "u32": 0, "b32": 0, "i32": 1, "f32": 2, "u64": 3, "b64": 3, "i64": 4, "f64": 5, "f16": 6,
}  # fmt: skip
_FACTORS: Final = {
    "f16": 0, "bf16": 1, "f32": 2, "f64": 3, "i8": 4, "iu8": 5, "e4m3": 6, "e5m2": 7, "e4m3fnuz": 8, "e5m2fnuz": 9,
    "e2m3": 10, "e3m2": 11, "e2m1": 12, "i32": 13,
}  # fmt: skip
_UNUSED: Final = {"UNUSED_PAD": 0, "UNUSED_PRESERVE": 1, "UNUSED_SEXT": 2}
_LONG: Final = {64: 255, 32: 254}
"""Bytes that a field of 8 bits names otherwise: those of scalar loads."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A kernel's arrays. `kept` holds what they point to; `copies` says that some go to local memory past registers."""

    code: NDArray[Any]
    others: NDArray[Any]
    moves: NDArray[Any]
    shapes: NDArray[Any]
    kept: tuple[Any, ...]
    copies: bool


class _Encoder:
    def __init__(self, program: Program, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._lanes, self._arch = program.listing.wave_size, program.listing.arch
        self._old = generation(program.listing.arch).clears_halves
        self.others: list[Any] = []
        self.moves: list[Any] = []
        self.shapes: list[Any] = []
        self._shape_numbers: dict[str, int] = {}
        self.kept: list[Any] = []

    def one(self, instruction: Instruction) -> Any:
        row = np.zeros((), INSTRUCTION)
        row["move"] = -1
        if instruction.second is not None:
            self.others.append(self.one(instruction.second))
            row["second"] = len(self.others)
        self._operands(row, "source", instruction.sources, self._source_kinds(instruction))
        self._operands(row, "result", instruction.results, ())
        row["sources"], row["results"] = len(instruction.sources), len(instruction.results)
        if instruction.operation is not None:
            self._computing(row, instruction, instruction.operation)
        elif instruction.memory is not None:
            self._access(row, instruction, instruction.memory)
        elif instruction.matrix is not None:
            self._matrix(row, instruction, instruction.matrix)
        elif instruction.name == "nothing":
            row["unit"] = _NOTHING
        elif instruction.name in FLOW:
            if instruction.name not in _FLOWS:
                raise NotEmulated(f"the instruction {instruction.name}")
            row["unit"], row["what"], row["target"] = _FLOW, _FLOWS[instruction.name], instruction.target
        else:
            self._moving(row, instruction)
        return row

    def count(self, row: Any, instruction: Instruction) -> None:
        """Which counter of copies into local memory an instruction raises or waits for: that of loads, or their own."""
        counters = generation(self._arch).counters
        names = (counters.load, COPIES)
        for event in raised(instruction, counters):
            if event.counter in names:
                row["raises"] = 1 + names.index(event.counter)
        waits = dict(waited(instruction, counters))
        if row["unit"] == _NOTHING and waits.keys() & set(names):
            row["unit"] = _WAIT
            row["what"], row["second"] = (waits.get(name, _NO_WAIT) for name in names)

    def _source_kinds(self, instruction: Instruction) -> tuple[str, ...]:
        if instruction.operation is not None:
            kinds = [kind for kind in instruction.operation.sources if kind not in ("scc", "exec32", "exec64")]
            # A mixed source is a float16 where op_sel_hi says so, a constant too.
            return tuple(
                "f16" if kind == "mix" and picks(instruction.modifiers, "op_sel_hi", place, 0) else kind
                for place, kind in enumerate(kinds)
            )
        if instruction.matrix is not None:
            out = instruction.matrix.out
            return ("u32", "u32", "f64" if out == "f64" else "f32" if out[0] != "i" else "u32", "u32", "u32")
        return ("i64",) * 5 if instruction.memory is not None and instruction.memory.space == "scalar" else ("u32",) * 5

    def _operands(self, row: Any, name: str, operands: tuple[Operand, ...], kinds: tuple[str, ...]) -> None:
        if len(operands) > (5 if name == "source" else 2):
            raise NotEmulated("an instruction of that many operands")
        for place, operand in enumerate(operands):
            field = row[name][place]
            if operand.kind not in _KINDS:
                raise NotEmulated(f"the operand {operand.text!r} here")
            field["kind"], field["number"], field["count"] = _KINDS[operand.kind], operand.number, operand.count
            field["high"], field["negate"], field["absolute"] = operand.half == "h", operand.negative, operand.absolute
            if operand.kind == "constant":
                field["value"] = _constant(operand, kinds[place] if place < len(kinds) else "u32")

    def _computing(self, row: Any, instruction: Instruction, operation: Operation) -> None:
        modifiers = instruction.modifiers
        row["unit"] = _VECTOR if operation.unit == "vector" else _SCALAR
        row["what"] = self._numbers[operation.name]
        row["sets_exec"] = instruction.writes_exec
        row["sources"] = len(operation.sources)
        shown = iter(range(len(instruction.sources)))
        filled = np.zeros(5, OPERAND)
        for place, kind in enumerate(operation.sources):
            row["source_type"][place] = _type(kind)
            if kind not in ("scc", "exec32", "exec64"):
                filled[place] = row["source"][next(shown)]
        row["source"] = filled
        results = operation.results if instruction.results or operation.unit == "scalar" else ()
        row["results"] = len(results)
        for place, kind in enumerate(results):
            row["result_type"][place] = _type(kind)
        self._modified(row, instruction, operation)
        row["clamp"] = "clamp" in modifiers
        row["factor"] = {"": 0, "2": 1, "4": 2}[modifiers.get("mul", "")] or (3 if "div" in modifiers else 0)
        half = row["picks_high"] or (instruction.results and instruction.results[0].half)
        row["clears"] = self._old and operation.clears and not half

    def _modified(self, row: Any, instruction: Instruction, operation: Operation) -> None:
        modifiers, count = instruction.modifiers, len(instruction.sources)
        mixed = operation.sources[:1] in (("mix",), ("mixb",))
        for name in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi"):
            default = int(name == "op_sel_hi" and not mixed)
            row[name] = sum(picks(modifiers, name, place, default) << place for place in range(count))
        if operation.name == "v_pk_mov_b32":
            row["op_sel_hi"] = (int(row["op_sel_hi"]) & ~2) | (int(row["op_sel"]) & 2)
        row["picks_high"] = (
            picks(modifiers, "op_sel", count, 0) if operation.results[0] in ("f16", "u16", "i16", "b16") else 0
        )
        if "sdwa" in modifiers:
            for place in range(min(count, 2)):
                chosen: Selection = selection(modifiers.get(f"src{place}_sel", "DWORD"))
                if chosen.bits < 32:
                    row["select"][place] = 1 + chosen.shift // 8 + 4 * (chosen.bits == 16)
                    row["extend"][place] = instruction.sources[place].sign_extended
            target = selection(modifiers.get("dst_sel", "DWORD"))
            if target.bits < 32:
                row["part"] = 1 + target.shift // 8 + 4 * (target.bits == 16)
                row["unused"] = _UNUSED[modifiers.get("dst_unused", "UNUSED_PAD")]
        if "dpp" in modifiers:
            row["move"] = self._moved(*move_sources(modifiers, self._lanes))
            row["zeroes"] = modifiers.get("bound_ctrl", "") in ("0", "1")
            row["fetches_off"] = modifiers.get("fi", "0") == "1"

    def _access(self, row: Any, instruction: Instruction, form: MemoryForm) -> None:
        modifiers = instruction.modifiers
        if "idxen" in modifiers or (form.atomic and form.space not in ("global", "lds")):
            raise NotEmulated(f"the instruction {instruction.statement.text}")
        if form.space == "scalar" and (form.store or instruction.name.startswith("s_buffer")):
            raise NotEmulated(f"the instruction {instruction.name}")
        row["unit"], row["space"], row["store"] = _ACCESS, _SPACES[form.space], form.store
        row["bytes"] = _LONG.get(form.bits // 8, form.bits // 8)
        row["is_signed"], row["half"] = form.signed, {"": 0, "low": 1, "high": 2}[form.half]
        row["pairs"], row["into"] = form.pairs, _INTO[form.into]
        if form.exchange is not None:
            row["what"] = 1 + self._layout(instruction.name, partial(self._exchange, form.exchange, form.bits))
        if form.pairs:
            for place in (0, 1):
                row["offset"][place] = int(modifiers.get(f"offset{place}", "0"), 0) * form.pairs * (form.bits // 8)
        else:
            row["offset"][0] = int(modifiers.get("offset", "0"), 0)
        sources = instruction.sources
        if form.atomic:
            if form.atomic not in _ATOMICS or form.kind not in _ATOMIC_KINDS:
                raise NotEmulated(f"the instruction {instruction.name}")
            row["atomic"], row["atomic_kind"] = _ATOMICS[form.atomic], _ATOMIC_KINDS[form.kind]
            row["returns"] = (
                form.returns or "glc" in modifiers or "sc0" in modifiers or "RETURN" in modifiers.get("th", "")
            )
            sources = sources[1:] if row["returns"] else sources
        base = 1 if form.into == "m0" else 2
        based = form.space == "global" and len(sources) > base and sources[base].kind != "off"
        row["flags"] = ("offen" in modifiers) | ("scale_offset" in modifiers) << 1 | based << 2 | form.wide << 3

    def _matrix(self, row: Any, instruction: Instruction, shape: MatrixShape) -> None:
        modifiers = instruction.modifiers
        for name, default in (("neg_lo", 0), ("op_sel", 0), ("op_sel_hi", 1)):
            row[name] = sum(picks(modifiers, name, place, default) << place for place in range(2))
        key = f"{shape.name} {shape.a.kind} {shape.b.kind}"
        row["unit"], row["what"] = _MATRIX, self._layout(key, partial(self._shape, shape))
        row["clamp"] = "clamp" in modifiers

    def _layout(self, key: str, make: Callable[[], Any]) -> int:
        """The number of a table of which lane holds what."""
        number = self._shape_numbers.setdefault(key, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(make())
        return number

    def _shape(self, shape: MatrixShape) -> Any:
        made = np.zeros((), SHAPE)
        for name, factor in (("a", shape.a), ("b", shape.b)):
            if factor.kind not in _FACTORS:
                raise NotEmulated(f"factors of {factor.kind}")
            made[name]["kind"], made[name]["bits"] = _FACTORS[factor.kind], factor.bits
            made[name]["elements"], made[name]["places"] = factor.places.shape[1], self._kept(factor.places)
        made["rows"], made["k"], made["out"] = shape.m, shape.k, _FACTORS[shape.out]
        made["registers"], made["places"] = shape.places_d.shape[1], self._kept(shape.places_d)
        made["block"] = SCALE_BLOCK if shape.scaled else 0
        return made

    def _exchange(self, exchange: Exchange, size: int) -> Any:
        made = np.zeros((), SHAPE)
        made["a"]["bits"], made["a"]["elements"] = exchange.bits, size // exchange.bits
        made["a"]["places"] = self._kept(exchange_sources(exchange, size, self._lanes))
        return made

    def _kept(self, places: NDArray[Any]) -> int:
        """The address of a table of small numbers, which is kept."""
        table = np.ascontiguousarray(places.astype(np.uint8))
        self.kept.append(table)
        return int(table.__array_interface__["data"][0])

    def _moving(self, row: Any, instruction: Instruction) -> None:
        row["unit"], row["what"] = _MOVE, _MOVES.index(instruction.name)
        modifiers = instruction.modifiers
        if instruction.name == "ds_swizzle_b32":
            row["move"] = self._moved(swizzle_sources(modifiers.get("offset", "0"), self._lanes), None)
        else:
            row["offset"][0] = int(modifiers.get("offset", "0"), 0)
        row["fetches_off"] = picks(modifiers, "op_sel", 0, 0) or modifiers.get("fi", "0") == "1"
        row["zeroes"] = picks(modifiers, "op_sel", 1, 0) or modifiers.get("bound_ctrl", "") in ("0", "1")

    def _moved(self, source: NDArray[Any], written: NDArray[Any] | None) -> int:
        """The number of a table of the lanes that lanes read."""
        move = np.zeros((), MOVE)
        move["source"][: self._lanes], move["written"][: self._lanes] = source, True if written is None else written
        self.moves.append(move)
        return len(self.moves) - 1


def _type(kind: str) -> int:
    return _TYPES[kind] if kind in _TYPES else {16: 0, 32: 1, 64: 2}[width(kind)]


def _constant(operand: Operand, kind: str) -> int:
    if kind in ("k16", "ku16"):
        raw = int(operand.value) & 0xFFFF
        return (raw - 0x10000 if raw > 0x7FFF and kind == "k16" else raw) & 0xFFFFFFFF
    if kind.endswith(("f16", "u16", "i16", "b16")):
        return packed_constant(operand, kind)
    if kind in ("pf32", "pb32"):
        bits = constant_bits(operand, "f32" if kind == "pf32" else "u32")
        return bits | bits << 32
    if kind in ("mix", "mixb"):
        return constant_bits(operand, "f32")
    return constant_bits(operand, kind)


def encode(program: Program, numbers: Mapping[str, int]) -> Encoded:
    """The arrays of a kernel. `numbers` gives each operation's place. Raises NotEmulated, with the line."""
    encoder = _Encoder(program, numbers)
    copies = any(each.memory is not None and each.memory.into for each in program.instructions)
    rows = []
    for instruction in program.instructions:
        try:
            row = encoder.one(instruction)
            if copies:
                encoder.count(row, instruction)
            rows.append(row)
        except NotEmulated as refusal:
            statement = instruction.statement
            raise NotEmulated(
                refusal.what, f"{program.listing.name}, line {statement.line}: {statement.text}"
            ) from None
    return Encoded(
        np.array(rows, INSTRUCTION),
        np.array(encoder.others, INSTRUCTION),
        np.array(encoder.moves, MOVE),
        np.array(encoder.shapes, SHAPE),
        tuple(encoder.kept),
        copies,
    )

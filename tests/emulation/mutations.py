"""Kernels with one mistake each, to see that emulation finds it; and which of the mistakes make no difference.

A mutant is a kernel's text with one instruction deleted or changed. It is *caught* where a check reports it, or where
the model's outputs are no longer within the tolerance of ref's. Mutants that are equivalent are not counted, by rules
that ask the text or the emulator, never the check that is judged:

- A barrier in a workgroup of one wave; one with no access to local memory on some side, back to the barrier before it
  or on to the one behind it in the text.
- A wait that a later one repeats before anything that it could guard: an access to memory, a barrier, a branch or a
  register that an earlier line loads. One between loads of two halves of a register, which memory does in order.
- A changed value where nothing changes: the model's outputs are, bit for bit, those of the original.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from unittest import mock

import numpy as np

import argosy
from argosy.artifact.artifact import Artifact
from argosy.emulation.assembly import Listing, Statement, read_assembly
from argosy.emulation.kernel import Kernel, make_kernel
from argosy.emulation.memory import Fault
from argosy.emulation.refusal import NotEmulated
from argosy.runtime.gpu import emulated
from benchmarks.models import catalog

__all__ = ["KINDS", "Judge", "Mutant", "mutants"]

_WAIT: Final = re.compile(r"s_waitcnt\b|s_waitcnt_vscnt|s_wait_\w+cnt")
_BARRIER: Final = re.compile(r"s_barrier$")
_MEMORY: Final = re.compile(r"(global|buffer|flat|scratch|ds|s_load|s_buffer)_")
_HALF_LOAD: Final = re.compile(r"(ds|global|buffer)_\w*d16")
_SHIFT: Final = re.compile(r"(v_lshlrev_b32|s_lshl_b32|v_lshl_add_u32|v_lshl_or_b32|s_lshl[1-4]_add_u32)")
_MASK: Final = re.compile(r"(v_and_b32|s_and_b32|v_and_or_b32|v_bfe_u32|s_bfe_u32)")
_SUM: Final = re.compile(
    r"(v_add_u32|v_add_nc_u32|s_add_i32|s_add_u32|s_add_co_i32|v_or_b32|s_or_b32|v_mul_u32_u24|v_mad_u32_u24|s_mul_i32|"
    r"v_mul_lo_u32|v_mov_b32|s_mov_b32|s_movk_i32|v_add_f32|v_mul_f32|v_fma_f32|v_fmac_f32|v_fmaak_f32|v_fmamk_f32)"
)
_ORDERED: Final = re.compile(
    r"v_sub(rev)?_|s_sub_|v_lshlrev|v_lshrrev|v_ashrrev|s_lsh[lr]_|v_cndmask_b32|v_cmp_[lg][te]_|v_perm_b32|v_sub_f32|"
    r"v_lshl_add|v_lshl_or|v_bfe|v_alignbit|s_ashr_"
)
_NUMBER: Final = re.compile(r"^-?(0x[0-9a-fA-F]+|\d+)$")
_FLOAT: Final = re.compile(r"^-?\d+\.\d+$")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed text. `place` is that of the line among the text's lines, `line` what is there instead."""

    kind: str
    model: str
    arch: str
    text: str
    place: int
    line: str

    @property
    def changed(self) -> str:
        """The whole text."""
        lines = self.text.splitlines()
        lines[self.place] = self.line
        return "\n".join(lines)

    def __str__(self) -> str:
        was = self.text.splitlines()[self.place].strip()
        return (
            f"{self.kind}, {self.model}, {self.arch}, {_listing(self.text).name}: {was} -> {self.line.strip() or '-'}"
        )


@lru_cache(maxsize=512)
def _listing(text: str) -> Listing:
    return read_assembly(text)


# ------------------------------------------------------------------------------------------------------ changes
def _deleted(pattern: re.Pattern[str]) -> Callable[[Statement], Iterator[str]]:
    def change(statement: Statement) -> Iterator[str]:
        if pattern.match(statement.mnemonic):
            yield ""

    return change


def _written(statement: Statement, operands: list[str]) -> str:
    more = " ".join(f"{name}:{value}" if value else name for name, value in statement.modifiers.items())
    return f"\t{statement.mnemonic} {', '.join(operands)} {more}".rstrip()


def _with(statement: Statement, place: int, value: str) -> str:
    operands = list(statement.operands)
    operands[place] = value
    return _written(statement, operands)


def _constant(statement: Statement) -> Iterator[str]:
    """A mask that lacks its lowest bit; one more; of floats half as much again, or one instead of zero.

    Floats of less than the tolerance, which correct roundings, are left alone.
    """
    if not (_MASK.match(statement.mnemonic) or _SUM.match(statement.mnemonic)) or not _plain(statement):
        return
    for place, text in enumerate(statement.operands[1:], 1):
        if _FLOAT.match(text):
            yield _with(statement, place, _half_more(float(text)))
        elif _NUMBER.match(text):
            number = int(text, 0)
            if _MASK.match(statement.mnemonic):
                yield _with(statement, place, hex(number & (number - 1)) if number > 0 else "0")
            elif "_f32" in statement.mnemonic or "v_mov" in statement.mnemonic or abs(number) > 1 << 24:
                value = float(np.uint32(number & 0xFFFFFFFF).view(np.float32))
                if value == 0 or abs(value) > 1e-4:
                    yield _with(statement, place, _half_more(value))
            else:
                yield _with(statement, place, str(number + 1))


def _half_more(value: float) -> str:
    return hex(int(np.float32(1.5 * value if value else 1).view(np.uint32)))


def _stride(statement: Statement) -> Iterator[str]:
    """Twice the distance between elements, or a place that is further by 16 bytes."""
    if not _plain(statement):
        return
    if _SHIFT.match(statement.mnemonic):
        for place, text in enumerate(statement.operands[1:], 1):
            if _NUMBER.match(text) and 0 < int(text, 0) < 24:
                yield _with(statement, place, str(int(text, 0) + 1))
                return
    if (
        re.match(r"(ds_|global_|buffer_)(read|write|load|store)", statement.mnemonic)
        and "offset" in statement.modifiers
    ):
        modifiers = {**statement.modifiers, "offset": str(int(statement.modifiers["offset"], 0) + 16)}
        changed = Statement(statement.line, "", statement.mnemonic, statement.operands, modifiers)
        yield _written(changed, list(statement.operands))


def _swapped(statement: Statement) -> Iterator[str]:
    if _ORDERED.match(statement.mnemonic) and _plain(statement) and len(statement.operands) > 2:
        first, second = statement.operands[1:3]
        if first != second:
            operands = [statement.operands[0], second, first, *statement.operands[3:]]
            yield _written(statement, operands)


KINDS: Final[Mapping[str, Callable[[Statement], Iterator[str]]]] = {
    "barrier deleted": _deleted(_BARRIER),
    "wait deleted": _deleted(_WAIT),
    "constant changed": _constant,
    "stride changed": _stride,
    "operands swapped": _swapped,
}


def _plain(statement: Statement) -> bool:
    """Whether an instruction has one result, of whole registers."""
    special = any(name in statement.modifiers for name in ("row_shr", "row_shl", "quad_perm", "dst_sel", "op_sel"))
    halves = any(text.endswith((".l", ".h")) for text in statement.operands)
    carries = "_co_" in statement.mnemonic and statement.mnemonic.startswith("v_")
    return statement.second is None and not special and not halves and not carries and bool(statement.operands)


def mutants(model: str, arch: str, texts: list[str], kind: str, seed: int) -> Iterator[Mutant]:
    """Mutants of one kind, by chance, the same in every run; no kernel has its turn twice before all had one."""
    chance = random.Random(f"{seed} {model} {arch} {kind}")
    each = []
    for text in texts:
        found = [
            Mutant(kind, model, arch, text, statement.line - 1, line)
            for statement in _listing(text).statements
            for line in KINDS[kind](statement)
        ]
        chance.shuffle(found)
        each.append(found)
    chance.shuffle(each)
    while any(each):
        for found in each:
            if found:
                yield found.pop()


# ------------------------------------------------------------------------------------------------------ judgement
class Judge:
    """A model's artifact for an arch: runs it with a kernel that is another."""

    def __init__(self, model: str, arch: str, precision: str) -> None:
        self.model, self.arch = model, arch
        self._room = 3e-3 if precision == "fp16" else 2e-6
        made = argosy.compile(catalog.make(model), targets=(arch,), precision=precision, strict=True)
        self._artifact, self._feeds = Artifact.open(made.to_bytes()), catalog.feeds(model)
        self._expected = argosy.Session(self._artifact, device="ref").run(self._feeds)
        self._kernels: dict[str, Kernel] = {}
        self._clean = self._run("", "", checked=True)  # raises where a check gives a false alarm
        self.texts = list(self._kernels)

    def found(self, mutant: Mutant) -> str:
        """How a mutant is caught; empty where it is not."""
        return self._told(mutant.text, mutant.changed)

    def _told(self, text: str, instead: str) -> str:
        """What a run reports or gets wrong with a kernel instead of another."""
        try:
            outputs = self._run(text, instead, checked=True)
        except (Fault, NotEmulated) as problem:
            return str(problem)
        for name, value in self._expected.items():
            apart = np.abs(np.asarray(outputs[name], np.float64) - value)
            if not (apart <= self._room * float(np.abs(value).max())).all():
                return f"{name} is {float(apart.max()):.3g} off"
        return ""

    def _run(self, text: str, instead: str, *, checked: bool) -> dict[str, Any]:
        def make(wanted: str) -> Kernel:
            if wanted == text:
                return make_kernel(instead)
            if wanted not in self._kernels:
                self._kernels[wanted] = make_kernel(wanted)
            return self._kernels[wanted]

        with mock.patch.object(emulated, "make_kernel", make):
            session = argosy.Session(self._artifact, device=f"emulated:{self.arch}", checked=checked)
            return session.run(self._feeds)

    # ------------------------------------------------------------------------------------------------- equivalence
    def equivalent(self, mutant: Mutant) -> bool:
        """Whether a mutant makes no difference, by the rules above."""
        listing = _listing(mutant.text)
        statements = listing.statements
        place = next(number for number, each in enumerate(statements) if each.line - 1 == mutant.place)
        if mutant.kind == "barrier deleted":
            return f".max_flat_workgroup_size: {listing.wave_size}\n" in mutant.text or _one_sided(statements, place)
        if mutant.kind == "wait deleted":
            return _repeated(statements, place)
        return self._same_outputs(mutant)

    def _same_outputs(self, mutant: Mutant) -> bool:
        try:
            outputs = self._run(mutant.text, mutant.changed, checked=False)
        except (Fault, NotEmulated):
            return False
        return all(np.array_equal(outputs[name], value, equal_nan=True) for name, value in self._clean.items())


def _one_sided(statements: tuple[Statement, ...], place: int) -> bool:
    def touches(numbers: range) -> bool:
        for number in numbers:
            name = statements[number].mnemonic
            if _BARRIER.match(name):
                return False
            if name.startswith(("ds_", "s_cbranch", "s_branch")):
                return True
        return False

    return not touches(range(place - 1, -1, -1)) or not touches(range(place + 1, len(statements)))


def _repeated(statements: tuple[Statement, ...], place: int) -> bool:
    if place + 1 < len(statements) and _HALF_LOAD.match(statements[place + 1].mnemonic):
        return True
    loaded = {
        register
        for each in statements[:place]
        if _MEMORY.match(each.mnemonic) and each.operands
        for register in re.findall(r"[vas]\d+|[vas]\[\d+:\d+\]", each.operands[0])
    }
    mine = statements[place]
    for each in statements[place + 1 :]:
        if _WAIT.match(each.mnemonic):
            if (each.operands, each.modifiers, each.mnemonic) == (mine.operands, mine.modifiers, mine.mnemonic):
                return True
            continue
        name = each.mnemonic
        if _MEMORY.match(name) or name.startswith(("s_barrier", "s_cbranch", "s_branch")):
            return False
        if name == "s_endpgm":
            return True
        if loaded & set(re.findall(r"[vas]\d+|[vas]\[\d+:\d+\]", " ".join(each.operands))):
            return False
    return True

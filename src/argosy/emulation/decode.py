"""Instructions with their meaning found: what of the text is a result, what a source, and which operation it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.emulation.archs import generation
from argosy.emulation.assembly import Listing, Statement
from argosy.emulation.matrix import MatrixShape, find_matrix
from argosy.emulation.memory_forms import MemoryForm, find_memory_form
from argosy.emulation.modifiers import picks
from argosy.emulation.operands import VCC, Operand, read_operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.table import OPERATIONS, RENAMED, Operation

__all__ = ["FLOW", "KNOWN", "LANES", "NOTHING", "Instruction", "Program", "decode", "plain_name"]

_SUFFIXES: Final = ("_e64_dpp", "_dpp", "_sdwa", "_e32", "_e64")
_SHORT_FLOAT: Final = re.compile(r"_(?:fp8|bf8)(?:_|$)")

NOTHING: Final = re.compile(
    r"s_(waitcnt|wait_|nop$|delay_alu|clause|sleep|setprio|sendmsg|inst_prefetch|icache_inv|code_end|sethalt|"
    r"set_inst_prefetch|singleuse_vdst|ttracedata|set_vgpr_msb|setkill|version|trap_none|"
    r"prefetch_|dcache_|decperflevel|incperflevel)|"
    r"(buffer|global)_(inv|wb|gl0_inv|gl1_inv|wbl2|wbinvl1|prefetch)|v_nop|s_set_gpr_idx_off|s_monitor_sleep"
)
"""Waits, hints and cache control: all is done in order here."""
_IDLE_MODE: Final = re.compile(r"hwreg\(HW_REG_WAVE_(SCHED_MODE,.*|MODE, 25, 1)\)")
"""Modes that change no result: how instructions are scheduled, and which are done again after a page fault."""
_ROUNDING: Final = re.compile(r"hwreg\(HW_REG_(WAVE_)?MODE, [02], 2\)")
FLOW: Final = frozenset({
    "s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz", "s_cbranch_execz",
    "s_cbranch_execnz", "s_endpgm", "s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst", "s_barrier_wait",
    "s_setreg_imm32_b32",
    "s_setreg_b32", "s_getreg_b32", "s_memtime", "s_memrealtime", "s_trap", "s_getpc_b64", "s_setpc_b64",
    "s_swappc_b64",
})  # fmt: skip
LANES: Final = frozenset({
    "v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32",
    "v_permlane16_b32", "v_permlanex16_b32", "v_permlane64_b32", "v_permlane32_swap_b32", "v_permlane16_swap_b32",
    "v_swap_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32",
    "ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32",
})  # fmt: skip
"""What moves values between lanes or files of registers."""
KNOWN: Final = frozenset({
    "offset", "offset0", "offset1", "glc", "slc", "dlc", "sc0", "sc1", "nt", "nv", "th", "scope", "offen",
    "scale_offset", "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "mul", "div", "bitop3", "sdwa",
    "dst_sel", "dst_unused", "src0_sel", "src1_sel", "dpp", "quad_perm", "dpp8", "row_shl", "row_shr", "row_ror",
    "row_mirror",
    "row_half_mirror", "row_bcast", "row_newbcast", "row_share", "row_xmask", "wave_shr", "wave_shl", "wave_ror",
    "wave_rol", "row_mask", "bank_mask", "bound_ctrl", "fi",
})  # fmt: skip
"""Modifiers that mean something here, or that caches alone heed."""
_FLOATS: Final = frozenset({"f16", "f32", "f64", "high", "pf16", "pf32"})


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. Just one of `operation`, `memory` and `matrix` is there, or none for what `name` says.

    `target` is the place a branch goes to; `writes_exec` is there for v_cmpx.
    """

    place: int
    name: str
    statement: Statement
    results: tuple[Operand, ...] = ()
    sources: tuple[Operand, ...] = ()
    modifiers: Mapping[str, str] = field(default_factory=dict)
    operation: Operation | None = None
    memory: MemoryForm | None = None
    matrix: MatrixShape | None = None
    target: int = -1
    writes_exec: bool = False
    second: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel, decoded. `joins` holds the places where branches go to."""

    listing: Listing
    instructions: tuple[Instruction, ...]
    joins: frozenset[int]


def decode(listing: Listing) -> Program:
    """Find what each instruction means. Raises NotEmulated, with the line, for the first that has no meaning here."""
    load_semantics()
    made = []
    for place, statement in enumerate(listing.statements):
        try:
            made.append(_instruction(place, statement, listing))
        except NotEmulated as refusal:
            where = f"{listing.name}, line {statement.line}: {statement.text}"
            raise NotEmulated(refusal.what, where) from None
    joins = frozenset(each.target for each in made if each.target >= 0)
    return Program(listing, tuple(made), joins)


def _instruction(place: int, statement: Statement, listing: Listing) -> Instruction:
    if statement.second is not None:
        first = _one(place, replace(statement, second=None), listing)
        return replace(first, second=_one(place, statement.second, listing))
    return _one(place, statement, listing)


def _one(place: int, statement: Statement, listing: Listing) -> Instruction:
    name = plain_name(statement.mnemonic)
    narrow = name == "v_permlane64_b32" and listing.wave_size == 32  # which has no other half to swap with
    if NOTHING.match(name) or narrow or _sets_nothing(name, statement.operands):
        return Instruction(place, "nothing", statement)
    if name in FLOW:
        return _flow(place, name, statement, listing)
    operands = tuple(read_operand(text) for text in statement.operands)
    modifiers = statement.modifiers
    if statement.mnemonic.endswith("_sdwa") or "_dpp" in statement.mnemonic:
        modifiers = {**modifiers, ("sdwa" if statement.mnemonic.endswith("_sdwa") else "dpp"): ""}
    form = find_memory_form(name)
    if form is not None and form.space == "buffer":
        form = replace(form, wide=generation(listing.arch).wide_resources)
        if "lds" in modifiers and not (form.store or form.atomic):
            form = replace(form, into="m0")
            modifiers = {key: text for key, text in modifiers.items() if key != "lds"}
    formats = (0, 0)
    if name.endswith("_f8f6f4"):
        # What elsewhere are permutations of lanes here are the types of the factors.
        formats = (int(modifiers.get("cbsz", "0")), int(modifiers.get("blgp", "0")))
        modifiers = {key: text for key, text in modifiers.items() if key not in ("cbsz", "blgp")}
    for modifier in modifiers:
        if modifier not in KNOWN:
            raise NotEmulated(f"the modifier {modifier}")
    if "scale_offset" in modifiers and (form is None or form.space not in ("global", "scalar")):
        raise NotEmulated(f"scale_offset of {name}")
    if name in LANES:
        return Instruction(place, name, statement, operands[:1], operands[1:], modifiers)
    if form is not None:
        if name.startswith("ds_cmpst_"):  # what is expected first; later names have it last
            operands = (*operands[:-2], operands[-1], operands[-2])
        return Instruction(place, name, statement, (), operands, modifiers, memory=form)
    shape = find_matrix(name, generation(listing.arch), formats)
    if shape is not None:
        _check_matrix(shape, operands, modifiers)
        return Instruction(place, name, statement, operands[:1], operands[1:], modifiers, matrix=shape)
    return _computing(place, name, statement, operands, modifiers, listing)


def _check_matrix(shape: MatrixShape, operands: tuple[Operand, ...], modifiers: Mapping[str, str]) -> None:
    """Refuse what a matrix instruction is asked for beyond its product. Raises NotEmulated."""
    signs = "neg_lo" in modifiers and not (shape.a.kind == "iu8" and picks(modifiers, "neg_lo", 2, 0) == 0)
    for name in ("cbsz", "abid", "blgp", "neg_hi", *(() if shape.scaled else ("op_sel",)), *(("neg_lo",) * signs)):
        if name in modifiers:
            raise NotEmulated(f"{name} of a matrix instruction")
    if len(operands) != (6 if shape.scaled else 4) or any(each.kind not in "va" for each in operands[4:]):
        raise NotEmulated(f"{shape.name} of these operands")


def _check_halves(operation: Operation, modifiers: Mapping[str, str]) -> None:
    """Refuse what picks or negates halves of operands that have none, and moves packed ones. Raises NotEmulated."""
    kinds = operation.sources
    if kinds and kinds[0].startswith("p") and ("dpp" in modifiers or "sdwa" in modifiers):
        raise NotEmulated(f"a part or a move of a source of {operation.name}")
    if kinds and kinds[0].startswith(("mix", "p")):
        return
    for name in ("op_sel_hi", "neg_lo", "neg_hi"):
        if name in modifiers:
            raise NotEmulated(f"{name} of {operation.name}")
    for place, kind in enumerate((*kinds, operation.results[0])):
        if picks(modifiers, "op_sel", place, 0) and kind not in ("u16", "i16", "f16", "b16"):
            raise NotEmulated(f"op_sel of {operation.name}")


def plain_name(mnemonic: str) -> str:
    """A mnemonic without what says how it is encoded."""
    name = mnemonic.replace("v_dual_", "v_", 1)
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _sets_nothing(name: str, operands: tuple[str, ...]) -> bool:
    """Whether it sets a mode that changes no result. Rounding to nearest, which is 0, is that of all kernels."""
    if name == "s_round_mode":
        return int(operands[0], 0) == 0
    if name != "s_setreg_imm32_b32":
        return False
    register, value = operands
    return bool(_IDLE_MODE.match(register) or (_ROUNDING.match(register) and int(value, 0) & 3 == 0))


def _flow(place: int, name: str, statement: Statement, listing: Listing) -> Instruction:
    target = -1
    if name.startswith(("s_branch", "s_cbranch")):
        label = statement.operands[0]
        if label not in listing.labels:
            raise NotEmulated(f"a branch to {label}")
        target = listing.labels[label]
    if name.startswith("s_barrier_") and int(statement.operands[0], 0) & 0xFFFF != 0xFFFF:
        raise NotEmulated(f"the barrier {statement.operands[0]}")
    return Instruction(place, name, statement, target=target)


def _computing(
    place: int,
    name: str,
    statement: Statement,
    operands: tuple[Operand, ...],
    modifiers: Mapping[str, str],
    listing: Listing,
) -> Instruction:
    compares = name.startswith("v_cmpx_")
    wanted = name.replace("v_cmpx_", "v_cmp_", 1) if compares else name
    if _SHORT_FLOAT.search(wanted) and generation(listing.arch).fnuz:
        wanted += "@fnuz"
    if wanted == "v_dot4_i32_iu8":
        signs = modifiers.get("neg_lo", "[0,0,0]").strip("[]").split(",")
        wanted += f"@{signs[0]}{signs[1]}"
        modifiers = {key: text for key, text in modifiers.items() if key != "neg_lo"}
    if wanted.startswith("v_cvt_scalef32_pk_") and wanted.endswith("_fp4"):
        wanted += f"@{picks(modifiers, 'op_sel', 0, 0) + 2 * picks(modifiers, 'op_sel', 1, 0)}"
        modifiers = {key: text for key, text in modifiers.items() if key != "op_sel"}
    if "bitop3" in modifiers:
        # The table of a function of bits is a source more; one of two sources is that of three, the last of which is 0.
        wanted = wanted.replace("bitop2", "bitop3")
        table = read_operand(modifiers["bitop3"])
        operands = (*operands, read_operand("0"), table) if "bitop2" in name else (*operands, table)
    held = f"{wanted}@clamp"
    if "clamp" in modifiers and (held in OPERATIONS or held in RENAMED):
        wanted, modifiers = held, {key: text for key, text in modifiers.items() if key != "clamp"}
    operation = OPERATIONS.get(RENAMED.get(wanted, wanted))
    if operation is None:
        raise NotEmulated(f"the instruction {statement.mnemonic}")
    _check_halves(operation, modifiers)
    for modifier in ("clamp", "mul", "div"):
        if modifier in modifiers and operation.results[0] not in _FLOATS:
            raise NotEmulated(f"{modifier} of {name}")
    shown = [kind for kind in operation.results if kind not in ("scc", "exec32", "exec64")]
    needed = [kind for kind in operation.sources if kind not in ("scc", "exec32", "exec64")]
    if operation.keeps:
        needed = needed[:-1]
    if compares and len(operands) == len(needed):
        shown = []
    results, sources = operands[: len(shown)], operands[len(shown) :]
    if len(sources) == len(needed) - 1 and needed[-1] == "mask":
        pair = 2 if listing.wave_size == 64 else 1
        sources = (*sources, Operand("s", "vcc", VCC, pair))
    if len(sources) == len(needed) + 1 and name.startswith(("s_addk", "s_mulk", "s_cmpk")):
        sources = sources[:-1]
    if len(results) != len(shown) or len(sources) != len(needed):
        raise NotEmulated(f"{statement.mnemonic} with {len(operands)} operands")
    if operation.sources[:1] == ("pf32",) and generation(listing.arch).one_scalar:
        modifiers = {**modifiers, "op_sel_hi": _halves_of_one_scalar(sources, modifiers)}
    if operation.keeps:
        sources = (*sources, results[0])
    return Instruction(place, name, statement, results, sources, modifiers, operation, writes_exec=compares)


def _halves_of_one_scalar(sources: tuple[Operand, ...], modifiers: Mapping[str, str]) -> str:
    """`op_sel_hi` where both halves read the same register of a scalar source."""
    picked = (
        picks(modifiers, *(("op_sel", place, 0) if source.kind == "s" else ("op_sel_hi", place, 1)))
        for place, source in enumerate(sources)
    )
    return f"[{','.join(map(str, picked))}]"

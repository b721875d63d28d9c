"""Which memory an instruction reads or writes, how many bits, and what becomes of the rest of a register."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from argosy.emulation.exchanges import Exchange

__all__ = [
    "ATOMICS",
    "EXCHANGES",
    "LOCAL_ATOMICS",
    "M0_ADDRESS",
    "SIZES",
    "IntoLocal",
    "MemoryForm",
    "Space",
    "find_memory_form",
]

Space = Literal["global", "buffer", "scratch", "lds", "scalar"]
IntoLocal = Literal["", "m0", "lanes"]
M0_ADDRESS: Final = 0x3FFFC
"""Bits of M0 that are an address in local memory, for loads that end there: whole dwords."""

_SPACES: Final[dict[str, Space]] = {
    "global": "global", "flat": "global", "buffer": "buffer", "scratch": "scratch", "ds": "lds", "s": "scalar",
    "s_buffer": "scalar",
}  # fmt: skip
SIZES: Final = {
    "dword": 32, "dwordx2": 64, "dwordx3": 96, "dwordx4": 128, "dwordx8": 256, "dwordx16": 512,
    "byte": 8, "short": 16, "ubyte": 8, "sbyte": 8, "ushort": 16, "sshort": 16,
    "b8": 8, "b16": 16, "b32": 32, "b64": 64, "b96": 96, "b128": 128, "b256": 256, "b512": 512,
    "u8": 8, "i8": 8, "u16": 16, "i16": 16,
}  # fmt: skip
_SIGNED: Final = frozenset({"sbyte", "sshort", "i8", "i16"})
_PLAIN: Final = re.compile(
    r"^(?P<space>global|flat|buffer|scratch|ds|s_buffer|s)_(?P<way>load|store|read|write)"
    r"(?P<two>2st64|2addr_stride64|2|_2addr_stride64|_2addr)?_(?P<before>d16_hi_|d16_)?(?P<size>[a-z]+\d*(?:x\d+)?)"
    r"(?P<after>_d16_hi|_d16)?$"
)
_INTO_LOCAL: Final = re.compile(
    r"^global_load_(?:lds_(?P<wave>dword(?:x[34])?|[us]byte|[us]short)|async_to_lds_(?P<lanes>b(?:8|32|64|128)))$"
)
EXCHANGES: Final[dict[str, tuple[Space, int, Exchange]]] = {
    "ds_read_b64_tr_b4": ("lds", 64, Exchange("columns", 4)),
    "ds_read_b64_tr_b8": ("lds", 64, Exchange("columns", 8)),
    "ds_read_b64_tr_b16": ("lds", 64, Exchange("columns", 16)),
    "ds_load_tr8_b64": ("lds", 64, Exchange("halves", 8)),
    "ds_load_tr16_b128": ("lds", 128, Exchange("squares", 16)),
    "global_load_tr8_b64": ("global", 64, Exchange("halves", 8)),
    "global_load_tr16_b128": ("global", 128, Exchange("squares", 16)),
}
ATOMICS: Final = (
    "add", "sub", "smin", "smax", "umin", "umax", "min", "max", "and", "or", "xor", "swap", "cmpswap", "inc", "dec",
    "pk_add", "min_num", "max_num",
)  # fmt: skip
LOCAL_ATOMICS: Final = (
    "add", "sub", "min", "max", "and", "or", "xor", "inc", "dec", "wrxchg", "cmpst", "storexchg", "cmpstore",
)  # fmt: skip
"""What atomic operations on global and on local memory are called."""
_ATOMIC: Final = re.compile(
    rf"^(?P<space>global|flat|buffer)_atomic_(?P<what>{'|'.join(ATOMICS)})"
    r"(?:_(?P<kind>u32|i32|u64|i64|f32|f64|f16|bf16|b32|b64|x2))?$"
)
_LOCAL_ATOMIC: Final = re.compile(rf"^ds_(?P<what>{'|'.join(LOCAL_ATOMICS)})(?P<back>_rtn)?_(?P<kind>[uifb]\d+)$")
_ATOMIC_NAMES: Final = {
    "smin": "min", "umin": "min", "smax": "max", "umax": "max", "min_num": "min", "max_num": "max",
    "wrxchg": "swap", "storexchg": "swap", "cmpst": "cmpswap", "cmpstore": "cmpswap",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryForm:
    """An access. `half` is "low" or "high" where it fills half a register and leaves the other.

    `pairs` is the distance, in elements, that counts as one between the two places of a paired access; 0 for one place.
    `atomic` names what is done there, on values of `kind`. `into` says that a load ends in local memory: at an address
    from M0 with a slot for each lane, or at that of each lane's register. `exchange` is there for loads that transpose.
    `wide`: the resource of a buffer has more bits of address and size.
    """

    space: Space
    store: bool
    bits: int
    signed: bool = False
    half: str = ""
    pairs: int = 0
    atomic: str = ""
    kind: str = ""
    returns: bool = False
    into: IntoLocal = ""
    exchange: Exchange | None = None
    wide: bool = False


def find_memory_form(name: str) -> MemoryForm | None:
    """The access that an instruction of that plain name makes; None for what is no access."""
    if name in EXCHANGES:
        space, bits, exchange = EXCHANGES[name]
        return MemoryForm(space, False, bits, exchange=exchange)
    local_load = _INTO_LOCAL.match(name)
    if local_load:
        size = local_load["wave"] or local_load["lanes"]
        return MemoryForm("global", False, SIZES[size], size in _SIGNED, into="m0" if local_load["wave"] else "lanes")
    plain = _PLAIN.match(name)
    if plain and plain["size"] in SIZES:
        half = plain["before"] or plain["after"] or ""
        two = (plain["two"] or "").strip("_")
        pairs = 0 if not two else 64 if "64" in two else 1
        return MemoryForm(
            _SPACES[plain["space"]],
            plain["way"] in ("store", "write"),
            SIZES[plain["size"]],
            plain["size"] in _SIGNED,
            "high" if "hi" in half else "low" if half else "",
            pairs,
        )
    atomic = _ATOMIC.match(name)
    if atomic:
        kind = _atomic_kind(atomic["what"], atomic["kind"])
        what = _ATOMIC_NAMES.get(atomic["what"], atomic["what"])
        bits = 32 if what == "pk_add" else int(kind.lstrip("uifb"))
        return MemoryForm(_SPACES[atomic["space"]], True, bits, atomic=what, kind=kind)
    local = _LOCAL_ATOMIC.match(name)
    if local:
        what = _ATOMIC_NAMES.get(local["what"], local["what"])
        return MemoryForm(
            "lds", True, int(local["kind"][1:]), atomic=what, kind=local["kind"], returns=bool(local["back"])
        )
    return None


def _atomic_kind(what: str, kind: str | None) -> str:
    """The type of an atomic operation, which older names say in part only."""
    if kind is not None and kind != "x2":
        return kind
    signed = what.startswith("s") and what not in ("swap", "sub")
    return ("i" if signed else "u") + ("64" if kind == "x2" else "32")

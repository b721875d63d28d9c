"""Loads, stores and atomic operations, in every space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.decode import Instruction
from argosy.emulation.exchanges import Exchange, exchange_sources
from argosy.emulation.memory import Fault, Memory
from argosy.emulation.memory_forms import M0_ADDRESS, MemoryForm
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.operands import M0, Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.arithmetic import TYPES

__all__ = ["run_access"]

_ATOMICS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "min": np.fmin,
    "max": np.fmax,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "swap": lambda _, new: new,
    "inc": lambda old, most: np.where(old >= most, 0, old + 1),
    "dec": lambda old, most: np.where((old == 0) | (old > most), most, old - 1),
}
_SENTINEL: Final = 0x7FFFFFFF
"""Where code points lanes of local memory that are to do nothing."""


def run_access(
    waves: Waves, memory: Memory, instruction: Instruction, form: MemoryForm, chosen: Any, count: int
) -> None:
    """An instruction with a `memory` form."""
    match form.space:
        case "scalar":
            _scalar(waves, memory, instruction, form, chosen, count)
        case "global":
            _global(waves, memory, instruction, form, chosen, count)
        case "buffer":
            _buffer(waves, memory, instruction, form, chosen, count)
        case "lds":
            _local(waves, instruction, form, chosen)
        case "scratch":
            _scratch(waves, instruction, form, chosen, count)


def _offset(instruction: Instruction, name: str = "offset") -> int:
    text = instruction.modifiers.get(name, "0")
    return int(text, 0)


def _wide(waves: Waves, operand: Operand, chosen: Any, count: int) -> NDArray[np.uint64]:
    return waves.read(operand, "u64", chosen, count)


def _scalar(waves: Waves, memory: Memory, instruction: Instruction, form: MemoryForm, chosen: Any, count: int) -> None:
    result, base, *rest = instruction.sources
    if form.store or instruction.name.startswith("s_buffer"):
        raise NotEmulated(f"the instruction {instruction.name}")
    address = _wide(waves, base, chosen, count)[:, 0]
    for each in rest:
        if each.kind == "constant":
            address = address + np.uint64(int(each.value) & 0xFFFFFFFFFFFFFFFF)
        else:
            scale = form.bits // 8 if "scale_offset" in instruction.modifiers else 1
            address = address + waves.read(each, "u32", chosen, count)[:, 0].astype(np.uint64) * np.uint64(scale)
    address = (address + np.uint64(_offset(instruction) & 0xFFFFFFFFFFFFFFFF)) & ~np.uint64(3)
    if form.bits < 32:
        raw = memory.read(address, form.bits // 8)
        waves.scalars[result.number, chosen] = _widened(raw, form)[:, 0]
        return
    words = memory.read(address, form.bits // 8).view(np.uint32)
    for place in range(words.shape[1]):
        waves.scalars[result.number + place, chosen] = words[:, place]


def _operands(instruction: Instruction, form: MemoryForm) -> tuple[Operand, tuple[Operand, ...]]:
    """The register of the data, and the operands that make the address."""
    if form.store:
        address, data, *more = instruction.sources
        return data, (address, *more)
    data, *more = instruction.sources
    return data, tuple(more)


def _global_addresses(
    waves: Waves, instruction: Instruction, parts: Any, size: int, chosen: Any, count: int
) -> NDArray[np.uint64]:
    first, second = parts
    offset = np.uint64(_offset(instruction) & 0xFFFFFFFFFFFFFFFF)
    if second is None or second.kind == "off":
        return np.broadcast_to(_wide(waves, first, chosen, count) + offset, (count, waves.lanes))
    base = _wide(waves, second, chosen, count)
    small = waves.read(first, "u32", chosen, count).astype(np.uint64)
    if "scale_offset" in instruction.modifiers:
        small = small * np.uint64(size)
    return np.broadcast_to(base + small + offset, (count, waves.lanes))


def _global(waves: Waves, memory: Memory, instruction: Instruction, form: MemoryForm, chosen: Any, count: int) -> None:
    mask = waves.exec_of(chosen)
    if form.atomic:
        _atomic(waves, memory, instruction, form, chosen, count, mask)
        return
    data, parts = (None, instruction.sources) if form.into == "m0" else _operands(instruction, form)
    addresses = _global_addresses(waves, instruction, (*parts, None)[:2], form.bits // 8, chosen, count)
    if form.into:
        places, used = _slots(waves, instruction, form, data, chosen)
        _load_local(waves, memory, form, addresses, places, mask & used, chosen)
        return
    _move(waves, memory, form, data, addresses, mask, chosen)


def _move(
    waves: Waves, memory: Memory, form: MemoryForm, data: Any, addresses: Any, mask: Any, chosen: Any, zero: Any = None
) -> None:
    """Load or store in the lanes of `mask`; lanes of `zero` load zeros instead."""
    if form.store:
        if mask.any():
            memory.write(addresses[mask], _stored(waves, form, data, chosen)[mask])
        return
    values = _fetched(memory, form, addresses, mask)
    if form.exchange:
        values = _exchanged(values, form.exchange, mask)
    _loaded(waves, form, data, values, mask if zero is None else mask | zero, chosen)


def _fetched(memory: Memory, form: MemoryForm, addresses: Any, mask: Any) -> NDArray[np.uint8]:
    """The bytes that each lane loads, shape (waves, lanes, bytes); zeros in those that are off."""
    values = np.zeros((*mask.shape, form.bits // 8), np.uint8)
    if mask.any():
        values[mask] = memory.read(addresses[mask], form.bits // 8)
    return values


def _exchanged(values: NDArray[np.uint8], exchange: Exchange, mask: Any) -> NDArray[np.uint8]:
    """What lanes have after they exchanged elements."""
    if not mask.all():
        raise Fault("a load that transposes needs all lanes on")
    table = exchange_sources(exchange, 8 * values.shape[2], values.shape[1])
    bits = np.unpackbits(values, axis=-1, bitorder="little").reshape(*values.shape[:2], -1, exchange.bits)
    return np.packbits(bits[:, table[..., 0], table[..., 1]].reshape(*values.shape[:2], -1), axis=-1, bitorder="little")


def _stored(waves: Waves, form: MemoryForm, data: Operand, chosen: Any) -> NDArray[np.uint8]:
    """The bytes that each lane stores, shape (waves, lanes, bytes)."""
    words = [
        np.broadcast_to(waves.word(data, place, chosen), (*_shape(waves, chosen),))
        for place in range(-(-form.bits // 32))
    ]
    if form.half == "high" or data.half == "h":
        words = [words[0] >> np.uint32(16)]
    stacked = np.ascontiguousarray(np.stack(words, -1)).view(np.uint8)
    return stacked[..., : form.bits // 8]


def _shape(waves: Waves, chosen: Any) -> tuple[int, int]:
    return len(waves.scc[chosen]), waves.lanes


def _widened(values: NDArray[np.uint8], form: MemoryForm) -> NDArray[np.uint32]:
    if form.bits == 8:
        return values.view(np.int8).astype(np.int32).view(np.uint32) if form.signed else values.astype(np.uint32)
    half = np.ascontiguousarray(values).view(np.uint16)
    return half.view(np.int16).astype(np.int32).view(np.uint32) if form.signed else half.astype(np.uint32)


def _loaded(waves: Waves, form: MemoryForm, data: Operand, values: NDArray[np.uint8], mask: Any, chosen: Any) -> None:
    if form.bits >= 32:
        words = values.view(np.uint32)
        for place in range(words.shape[-1]):
            waves.write_word(data, place, chosen, words[..., place], mask)
        return
    word = _widened(values, form)[..., 0]
    if form.half or data.half:
        waves.write_half(data, chosen, word & np.uint32(0xFFFF), mask, high=form.half == "high" or data.half == "h")
    else:
        waves.write_word(data, 0, chosen, word, mask)


# ------------------------------------------------------------------------------------------------------ buffers
def _buffer(waves: Waves, memory: Memory, instruction: Instruction, form: MemoryForm, chosen: Any, count: int) -> None:
    """A raw buffer: what lies beyond its size loads zeros and stores nothing.

    A lane's offset and that of the instruction are added in 32 bits, then that of all lanes; on gfx1250 nothing wraps.
    Sources: pull requests 10928 of ROCm/rocm-systems (as seen on gfx950) and 152584 of llvm/llvm-project.
    """
    if form.atomic or "idxen" in instruction.modifiers:
        raise NotEmulated(f"the instruction {instruction.statement.text}")
    data, (place, resource, shared) = instruction.sources[0], instruction.sources[-3:]
    start, size = _resource(waves, form, resource, chosen, count)
    own: Any = np.uint64(_offset(instruction))
    if "offen" in instruction.modifiers:
        own = own + waves.read(place, "u32", chosen, count).astype(np.uint64)
    own = own if form.wide else own & np.uint64(0xFFFFFFFF)
    offset = np.broadcast_to(own + waves.read(shared, "u32", chosen, count).astype(np.uint64), (count, waves.lanes))
    mask = waves.exec_of(chosen)
    inside = offset + np.uint64(form.bits // 8) <= size
    if form.into:
        places, used = _slots(waves, instruction, form, data, chosen)
        _load_local(waves, memory, form, start + offset, places, mask & used, chosen, on=mask & used & inside)
        return
    _move(waves, memory, form, data, start + offset, mask & inside, chosen, zero=mask & ~inside)


def _resource(waves: Waves, form: MemoryForm, resource: Operand, chosen: Any, count: int) -> tuple[Any, Any]:
    """Where a buffer starts, and its bytes. The fields are those of each generation's "Buffer Resource Descriptor"."""
    low, high = (
        _wide(waves, Operand("s", resource.text, resource.number + place, 2), chosen, count) for place in (0, 2)
    )
    if form.wide:
        start = low & np.uint64((1 << 57) - 1)
        size = ((low >> np.uint64(57)) | (high << np.uint64(7))) & np.uint64((1 << 45) - 1)
        stride = (high >> np.uint64(44)) & np.uint64(0xFFFF)
    else:
        start, size = low & np.uint64((1 << 48) - 1), high & np.uint64(0xFFFFFFFF)
        stride = (low >> np.uint64(48)) & np.uint64(0x3FFF)
    if stride.any():
        raise NotEmulated("a buffer with a stride")
    return start, size


# ------------------------------------------------------------------------------------------------------ local memory
def _local(waves: Waves, instruction: Instruction, form: MemoryForm, chosen: Any) -> None:
    mask = waves.exec_of(chosen)
    unit = form.bits // 8
    if form.atomic:
        _local_atomic(waves, instruction, form, chosen, mask)
        return
    data: tuple[Operand, ...]
    if form.store:
        address, *more = instruction.sources
        data = tuple(more)
    else:
        first, address = instruction.sources
        data = (first, Operand(first.kind, first.text, first.number + form.bits // 32)) if form.pairs else (first,)
    base = waves.word(address, 0, chosen).copy()  # a result may lie where the address is
    names = ("offset0", "offset1") if form.pairs else ("offset",)
    for each, name in zip(data, names, strict=True):
        shift = _offset(instruction, name) * (unit * form.pairs if form.pairs else 1)
        places = np.broadcast_to(base + np.uint32(shift), mask.shape).astype(np.int64)
        on = mask & (np.broadcast_to(base, mask.shape) != _SENTINEL)
        group = np.broadcast_to(waves.group_of[chosen][:, None], mask.shape)
        _check_local(waves, places, on, unit)
        index = places[on][:, None] + np.arange(unit)
        if form.store:
            waves.lds[group[on][:, None], index] = _stored(waves, form, each, chosen)[on]
        else:
            values = np.zeros((*mask.shape, unit), np.uint8)
            values[on] = waves.lds[group[on][:, None], index]
            if form.exchange:
                values = _exchanged(values, form.exchange, mask)
            _loaded(waves, form, each, values, mask, chosen)


def _slots(waves: Waves, instruction: Instruction, form: MemoryForm, address: Any, chosen: Any) -> tuple[Any, Any]:
    """Where in local memory each lane's load ends, and the lanes that are to do something.

    From M0 on, lanes have slots of a dword, or of four for loads of three or four ("Memory Buffer Load to LDS" of the
    CDNA4 document); the offset counts there too.
    """
    if form.into == "lanes":
        base = np.broadcast_to(waves.word(address, 0, chosen), _shape(waves, chosen))
        places = base + np.uint32(_offset(instruction) & 0xFFFFFFFF)
        return places.astype(np.int64), (base != _SENTINEL) & (places != _SENTINEL)
    first = waves.scalars[M0][chosen][:, None]
    slots = np.arange(waves.lanes) * (4 if form.bits <= 32 else 16)
    return (first & np.uint32(M0_ADDRESS)).astype(np.int64) + slots + _offset(instruction), first != _SENTINEL


def _load_local(
    waves: Waves, memory: Memory, form: MemoryForm, addresses: Any, places: Any, mask: Any, chosen: Any, on: Any = None
) -> None:
    """Load from global into local memory; lanes of `mask` that are not `on` store zeros."""
    values = _fetched(memory, form, addresses, mask if on is None else on)
    if form.into == "m0" and form.bits < 32:
        values = np.ascontiguousarray(_widened(values, form)).view(np.uint8)
    unit = values.shape[2]
    _check_local(waves, places, mask, unit)
    group = np.broadcast_to(waves.group_of[chosen][:, None], mask.shape)
    waves.lds[group[mask][:, None], places[mask][:, None] + np.arange(unit)] = values[mask]


def _check_local(waves: Waves, places: Any, on: Any, unit: int) -> None:
    wrong = on & ((places < 0) | (places + unit > waves.lds.shape[1]))
    if wrong.any():
        raise Fault(f"{unit} bytes at {int(places[wrong][0]):#x} lie beyond the {waves.lds.shape[1]} of local memory")


# ------------------------------------------------------------------------------------------------------ private memory
def _scratch(waves: Waves, instruction: Instruction, form: MemoryForm, chosen: Any, count: int) -> None:
    mask = waves.exec_of(chosen)
    data, parts = _operands(instruction, form)
    places = np.full((count, waves.lanes), _offset(instruction), np.int64)
    for part in parts:
        if part.kind != "off":
            places = places + waves.read(part, "u32", chosen, count)
    unit = form.bits // 8
    size = waves.private.shape[2]
    wrong = mask & ((places < 0) | (places + unit > size))
    if wrong.any():
        raise Fault(f"{unit} bytes at {int(places[wrong][0]):#x} lie beyond the {size} of a lane's private memory")
    which = np.arange(waves.total)[chosen]
    owner = np.broadcast_to(which[:, None], mask.shape)[mask][:, None]
    lane = np.broadcast_to(np.arange(waves.lanes)[None, :], mask.shape)[mask][:, None]
    index = places[mask][:, None] + np.arange(unit)
    if form.store:
        waves.private[owner, lane, index] = _stored(waves, form, data, chosen)[mask]
    else:
        values = np.zeros((*mask.shape, unit), np.uint8)
        values[mask] = waves.private[owner, lane, index]
        _loaded(waves, form, data, values, mask, chosen)


# ------------------------------------------------------------------------------------------------------ atomics
def _atomic(
    waves: Waves, memory: Memory, instruction: Instruction, form: MemoryForm, chosen: Any, count: int, mask: Any
) -> None:
    """One lane after the other, in order of waves and lanes."""
    modifiers = instruction.modifiers
    returns = "glc" in modifiers or "sc0" in modifiers or "RETURN" in modifiers.get("th", "")
    sources = instruction.sources
    result = sources[0] if returns else None
    address, data, *more = sources[1:] if returns else sources
    size = form.bits // 8
    addresses = _global_addresses(waves, instruction, (address, more[0] if more else None), size, chosen, count)
    compared = form.atomic == "cmpswap"
    words = [
        np.broadcast_to(waves.word(data, place, chosen), mask.shape)
        for place in range((2 if compared else 1) * size // 4)
    ]
    given = np.ascontiguousarray(np.stack(words, -1))
    old = np.zeros((*mask.shape, size // 4), np.uint32)
    for wave, lane in zip(*np.nonzero(mask), strict=True):
        where = addresses[wave, lane : lane + 1]
        before = memory.read(where, size)
        old[wave, lane] = before.view(np.uint32)[0]
        after = _after(form, before, given[wave, lane])
        memory.write(where, after)
    if result is not None:
        for place in range(size // 4):
            waves.write_word(result, place, chosen, old[..., place], mask)


def _local_atomic(waves: Waves, instruction: Instruction, form: MemoryForm, chosen: Any, mask: Any) -> None:
    """One lane after the other; of a compare-and-swap, what is new comes before what is expected."""
    address, *data = instruction.sources[1:] if form.returns else instruction.sources
    base = np.broadcast_to(waves.word(address, 0, chosen), mask.shape)
    places = (base + np.uint32(_offset(instruction))).astype(np.int64)
    size = form.bits // 8
    on = mask & (base != _SENTINEL)
    _check_local(waves, places, on, size)
    words = [
        np.broadcast_to(waves.word(each, place, chosen), mask.shape) for each in data for place in range(size // 4)
    ]
    given, old = np.ascontiguousarray(np.stack(words, -1)), np.zeros((*mask.shape, size), np.uint8)
    for wave, lane in zip(*np.nonzero(on), strict=True):
        place = places[wave, lane]
        where = waves.lds[waves.group_of[chosen][wave], place : place + size]
        old[wave, lane] = where
        where[:] = _after(form, where[None].copy(), given[wave, lane])[0]
    if form.returns:
        _loaded(waves, form, instruction.sources[0], old, mask, chosen)


def _after(form: MemoryForm, before: NDArray[np.uint8], given: NDArray[np.uint32]) -> NDArray[np.uint8]:
    if form.atomic == "cmpswap":
        half = len(given) // 2
        new, expected = given[:half].view(np.uint8), given[half:].view(np.uint8)
        return new[None] if (before[0] == expected).all() else before
    if form.atomic == "pk_add":
        if form.kind != "f16":
            raise NotEmulated("an atomic sum of packed bfloat16")
        return (before.view(np.float16) + given.view(np.float16)).view(np.uint8).reshape(1, -1)
    kind = TYPES[form.kind]
    if form.atomic not in _ATOMICS:
        raise NotEmulated(f"the atomic operation {form.atomic}")
    found = _ATOMICS[form.atomic](before.view(kind), given.view(kind))
    return np.ascontiguousarray(found.astype(kind)).view(np.uint8).reshape(1, -1)

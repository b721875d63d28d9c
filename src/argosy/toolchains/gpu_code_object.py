"""What a GPU code object says of itself: what it is for, its kernel's registers, memory, spills and parameters.

Sources: LLVM's AMDGPUUsage ("AMDGPU ELF Header", "Code Object V5 Metadata"), LLVM's BinaryFormat/ELF.h (`EF_CUDA_*`),
and for `.nv.info`, of which nothing is published, what `cuobjdump -elf` prints of it. PTX says no registers: a driver
gives them out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

__all__ = ["CodeFacts", "KernelParameter", "facts_of", "instruction_bytes", "matrix_instructions"]

_AMD_NOTE: Final = 32  # NT_AMDGPU_METADATA
_PARAMETER: Final = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, place, size in bits 18 and up of the fourth word
_PARAMETER_BYTES: Final = 0x19  # EIATTR_CBANK_PARAM_SIZE
_FRAME: Final = 0x11  # EIATTR_FRAME_SIZE: symbol, bytes
_REGISTERS: Final = 0x2F  # EIATTR_REGCOUNT: symbol, registers of a thread
_CUDA_ABI: Final = 8  # from this version on, the flags hold the architecture one byte higher
_MATRIX: Final = re.compile(r"\b(?:v_s?mfmac?_|v_s?wmma(?:c)?_|(?:wgmma|tcgen05)\.mma|mma\.sync)[\w.]*")


class KernelParameter(msgspec.Struct, frozen=True):
    """Where a parameter lies in the parameter block, how large it is, and whether it points to a buffer, if said."""

    offset: int
    size: int
    pointer: bool | None = None


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """A code object in numbers: bytes, threads and registers of a thread; None is what it does not say.

    `arch` is what it runs on (`gfx942`, `sm_90`, for PTX its `.target` with the suffix of code that runs nowhere else,
    which flags don't tell), `triple` the target triple of LLVM or
    the form of the code. `spills` counts registers that are kept in memory, and scalar ones that LLVM
    keeps in lanes of vector registers; where code only says how many bytes of
    local memory a thread has, `stack` is all there is. `hidden` are parameters behind those of the program, which the
    driver fills in by their names.
    """

    form: Literal["hsaco", "cubin", "ptx"]
    entry: str
    arch: str
    triple: str
    flags: int | None
    registers: int | None
    scalar_registers: int | None
    accumulation_registers: int | None
    spills: int | None
    stack: int | None
    shared: int | None
    wave_size: int | None
    parameter_bytes: int
    parameters: tuple[KernelParameter, ...]
    hidden: tuple[str, ...] = ()

    @property
    def spilled(self) -> int:
        """32-bit registers of a thread that lie in memory, as far as the code says."""
        return max(self.spills or 0, (self.stack or 0) // 4)


def facts_of(form: str, code: bytes) -> CodeFacts:
    """Read a code object that holds one kernel. Raises ValueError where it is none."""
    try:
        if form == "ptx":
            return _ptx(code.decode())
        elf = _Elf(code)
        return _hsaco(elf) if form == "hsaco" else _cubin(elf)
    except (struct.error, LookupError, TypeError, ValueError, msgspec.DecodeError) as error:
        raise ValueError(f"this is no {form} with one kernel: {error}") from error


def matrix_instructions(assembly: str) -> dict[str, int]:
    """How often each matrix instruction stands in an assembly text, by its mnemonic."""
    found: dict[str, int] = {}
    for match in _MATRIX.finditer(assembly):
        found[match.group()] = found.get(match.group(), 0) + 1
    return dict(sorted(found.items()))


def instruction_bytes(code: bytes) -> bytes:
    """The instructions of an AMD code object, linked or not."""
    return _Elf(code).section(".text").content


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    content: bytes
    size: int


class _Elf:
    """The sections of a 64-bit little-endian ELF file."""

    def __init__(self, code: bytes) -> None:
        if code[:6] != b"\x7fELF\x02\x01":
            raise ValueError("this is no 64-bit little-endian ELF file")
        self.abi = code[8]
        (self.flags,) = struct.unpack_from("<I", code, 48)
        (start,) = struct.unpack_from("<Q", code, 40)
        each, count, names = struct.unpack_from("<HHH", code, 58)
        heads = [struct.unpack_from("<IIQQQQ", code, start + each * place) for place in range(count)]
        table = heads[names][4]

        def name(offset: int) -> str:
            return code[table + offset : code.index(b"\0", table + offset)].decode()

        self.sections = [
            _Section(name(word), kind, b"" if kind == 8 else code[place : place + size], size)
            for word, kind, _, _, place, size in heads
        ]

    def section(self, name: str) -> _Section:
        return {section.name: section for section in self.sections}[name]


def _hsaco(elf: _Elf) -> CodeFacts:
    metadata = _amd_metadata(elf)
    (kernel,) = metadata["amdhsa.kernels"]
    own = [each for each in kernel.get(".args", ()) if not each[".value_kind"].startswith("hidden_")]
    triple = metadata["amdhsa.target"]
    return CodeFacts(
        "hsaco",
        kernel[".name"],
        triple.rpartition("--")[2].rpartition("unknown-")[2],
        triple,
        elf.flags,
        kernel[".vgpr_count"],
        kernel[".sgpr_count"],
        kernel.get(".agpr_count"),
        kernel[".vgpr_spill_count"] + kernel[".sgpr_spill_count"],
        kernel[".private_segment_fixed_size"],
        kernel[".group_segment_fixed_size"],
        kernel[".wavefront_size"],
        -(-max((each[".offset"] + each[".size"] for each in own), default=0) // 8) * 8,
        tuple(KernelParameter(each[".offset"], each[".size"], each[".value_kind"] == "global_buffer") for each in own),
        tuple(each[".value_kind"] for each in kernel.get(".args", ()) if each[".value_kind"].startswith("hidden_")),
    )


def _amd_metadata(elf: _Elf) -> Mapping[str, Any]:
    note = elf.section(".note").content
    name, size, kind = struct.unpack_from("<III", note, 0)
    if kind != _AMD_NOTE:
        raise ValueError("its first note is not AMDGPU's")
    start = 12 + -(-name // 4) * 4
    decoded: Mapping[str, Any] = msgspec.msgpack.decode(note[start : start + size])
    return decoded


def _cubin(elf: _Elf) -> CodeFacts:
    (entry,) = (section.name[6:] for section in elf.sections if section.name.startswith(".text."))
    counts = {attribute: struct.unpack_from("<I", value, 4)[0] for attribute, value in _attributes(elf, ".nv.info")
              if attribute in (_FRAME, _REGISTERS)}  # fmt: skip
    parameters: list[tuple[int, KernelParameter]] = []
    size = 0
    for attribute, value in _attributes(elf, f".nv.info.{entry}"):
        if attribute == _PARAMETER:
            _, ordinal, place, packed = struct.unpack_from("<IHHI", value)
            parameters.append((ordinal, KernelParameter(place, packed >> 18)))
        elif attribute == _PARAMETER_BYTES:
            (size,) = struct.unpack_from("<H", value)
    modern = elf.abi >= _CUDA_ABI
    version = (elf.flags >> 8) & 0xFF if modern else elf.flags & 0xFF
    shared = sum(section.size for section in elf.sections if section.name == f".nv.shared.{entry}")
    return CodeFacts(
        "cubin",
        entry,
        f"sm_{version}",
        "nvptx64-nvidia-cuda",
        elf.flags,
        counts[_REGISTERS],
        None,
        None,
        None,
        counts[_FRAME],
        shared,
        32,
        size,
        tuple(parameter for _, parameter in sorted(parameters, key=lambda each: each[0])),
    )


def _attributes(elf: _Elf, name: str) -> Iterator[tuple[int, bytes]]:
    """The attributes of a section: format and number a byte each, then two bytes of value, or of size before one."""
    content, place = elf.section(name).content, 0
    while place < len(content):
        form, attribute, value = struct.unpack_from("<BBH", content, place)
        if form != 4:
            yield attribute, content[place + 2 : place + 4]
            place += 4
            continue
        yield attribute, content[place + 4 : place + 4 + value]
        place += 4 + value


_WIDTHS: Final = {"8": 1, "16": 2, "32": 4, "64": 8}


def _ptx(text: str) -> CodeFacts:
    entry = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)", text, re.DOTALL)
    target = re.search(r"^\.target\s+(\w+)", text, re.MULTILINE)
    if entry is None or target is None:
        raise ValueError("it has no entry or no target")
    place, parameters = 0, []
    for kind, rest in re.findall(r"\.param\s+\.[usbf](\d+)\s+([^,\n]*)", entry.group(2)):
        width = _WIDTHS[kind]
        place = -(-place // width) * width
        parameters.append(KernelParameter(place, width, ".ptr" in rest))
        place += width
    return CodeFacts(
        "ptx", entry.group(1), target.group(1), "nvptx64-nvidia-cuda", None, None, None, None, None, None, None, 32,
        place, tuple(parameters),
    )  # fmt: skip

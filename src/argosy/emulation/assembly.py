"""The assembly text of a kernel, read: instructions with operands and modifiers, labels, and the kernel descriptor.

The text is what Triton assembles into the code object, in LLVM's syntax ("AMDGPU Operands", "AMDGPU Modifiers" and
"User Guide for AMDGPU Backend" of LLVM's documentation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.errors import ArtifactError

__all__ = ["Listing", "Statement", "read_assembly"]

_LABEL: Final = re.compile(r"^([.\w$]+):")
_PIECE: Final = re.compile(r"(?:[^\s,\[(|]|\[[^\]]*\]|\([^)]*\)|\|[^|]*\|)+|,")
_TARGET: Final = re.compile(r'\.amdgcn_target\s+"[^"]*-([\w:+-]+)"')
_ENCODED: Final = re.compile(r"v\d+ /\*(v\d+)\*/|v\[\d+:\d+\] /\*(v\[\d+:\d+\])\*/")


@dataclass(frozen=True, slots=True)
class Statement:
    """One instruction as it is written. `line` counts from 1; `second` is the other half of a dual instruction."""

    line: int
    text: str
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: Mapping[str, str]
    second: Statement | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A kernel's text. `labels` give places in `statements`; `descriptor` holds the numbers of `.amdhsa_` lines."""

    name: str
    arch: str
    statements: tuple[Statement, ...]
    labels: Mapping[str, int]
    descriptor: Mapping[str, int]
    wave_size: int
    kernarg_size: int


def read_assembly(text: str) -> Listing:
    """Read the text of one kernel. Raises ArtifactError where it is not that of exactly one."""
    statements: list[Statement] = []
    labels: dict[str, int] = {}
    descriptor: dict[str, int] = {}
    names: list[str] = []
    section, in_metadata = "", False
    found: dict[str, int] = {}
    target = _TARGET.search(text)
    for number, line in enumerate(text.splitlines(), 1):
        if in_metadata:
            key, _, value = line.strip().removeprefix("- ").partition(":")
            if key in (".wavefront_size", ".kernarg_segment_size"):
                found[key] = int(value)
            in_metadata = ".end_amdgpu_metadata" not in line
            continue
        code = line.partition(";")[0].strip() if "//" not in line else line.partition("//")[0].partition(";")[0].strip()
        if not code:
            continue
        label = _LABEL.match(code)
        if label:
            labels[label.group(1)] = len(statements)
            code = code[label.end() :].strip()
        if code.startswith("."):
            directive, _, rest = code.partition(" ") if " " in code.partition("\t")[0] else code.partition("\t")
            match directive:
                case ".text":
                    section = ".text"
                case ".section":
                    section = rest.partition(",")[0].strip()
                case ".amdgpu_metadata":
                    in_metadata = True
                case ".amdhsa_kernel":
                    names.append(rest.strip())
                case _ if directive.startswith(".amdhsa_") and rest.strip().lstrip("-").isdigit():
                    descriptor[directive.removeprefix(".amdhsa_")] = int(rest)
                case _:
                    pass
        elif code and section == ".text":
            statements.append(_statement(number, _ENCODED.sub(lambda match: match.group(1) or match.group(2), code)))
    if len(names) != 1 or target is None:
        raise ArtifactError(
            f"an assembly text holds {len(names)} kernels, where one is expected",
            hint="compile the artifact anew",
        )
    wave = found.get(".wavefront_size", 64)
    return Listing(
        names[0], target.group(1), tuple(statements), labels, descriptor, wave, found.get(".kernarg_segment_size", 0)
    )


def _statement(line: int, code: str) -> Statement:
    first, dual, second = code.partition("::")
    made = _one(line, code, first.strip())
    if not dual:
        return made
    other = _one(line, code, second.strip())
    return Statement(line, code, made.mnemonic, made.operands, made.modifiers, other)


def _one(line: int, text: str, code: str) -> Statement:
    mnemonic, _, rest = code.replace("\t", " ").partition(" ")
    operands: list[str] = []
    modifiers: dict[str, str] = {}
    expects = True
    for piece in _PIECE.findall(rest):
        if piece == ",":
            expects = True
        elif expects:
            operands.append(piece)
            expects = False
        else:
            name, _, value = piece.partition(":")
            modifiers[name] = value
    return Statement(line, text, mnemonic, tuple(operands), modifiers)

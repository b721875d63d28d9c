"""A program as files: its text form, and beside it the constants that the text names by their hash.

The second is a `.npz` of the stored bytes by hash, for the text form writes out only constants of a few elements.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import STRING, UINT8
from argosy.ir.literal import Literal
from argosy.ir.literal_text import INLINE_ELEMENTS
from argosy.ir.module import Constant, Module
from argosy.ir.parser import parse_program
from argosy.ir.printer import print_program
from argosy.ir.program import Program

__all__ = ["CONSTANTS_LIMIT", "program_files", "read_program"]

CONSTANTS_LIMIT: Final = 1 << 26
"""Most bytes of constants that go along with a text; those of larger programs are named by hash only."""


def program_files(stem: str, program: Program) -> dict[str, bytes]:
    """The content of `STEM.txt`, and of `STEM.npz` where the text names constants by hash.

    Constants of more than `CONSTANTS_LIMIT` bytes are left out, which the first line of the text then says.
    """
    text = print_program(program)
    named = {literal.digest: literal for literal in _named(program.main)}
    if sum(literal.nbytes for literal in named.values()) > CONSTANTS_LIMIT:
        text = f"# its constants are over {CONSTANTS_LIMIT >> 20} MiB and were left out\n{text}"
        named = {}
    files = {f"{stem}.txt": text.encode()}
    if named:
        stored: dict[str, Any] = {digest: _bytes(literal) for digest, literal in named.items()}
        packed = io.BytesIO()
        np.savez(packed, **stored)
        files[f"{stem}.npz"] = packed.getvalue()
    return files


def read_program(file: Path) -> Program:
    """The program in a text file, with the constants beside it. Raises ModelError where one is missing."""
    sidecar = file.with_suffix(".npz")
    stored: dict[str, Literal] = {}
    if sidecar.exists():
        try:
            with np.load(sidecar, allow_pickle=False) as held:
                stored = {digest: _literal(held[digest]) for digest in held.files}
        except (OSError, ValueError, zipfile.BadZipFile) as problem:
            raise ModelError(f"the constants cannot be read: {problem}", where=str(sidecar)) from problem
    return parse_program(file.read_text(encoding="utf-8"), stored)


def _named(module: Module) -> Iterator[Literal]:
    """The constants that the text form names by hash."""
    for instruction in module.walk():
        if isinstance(instruction.op, Constant):
            literal = instruction.op.literal
            if not literal.is_splat and literal.size > INLINE_ELEMENTS:
                yield literal


def _bytes(literal: Literal) -> Any:
    """The stored bytes; a text is bytes too, between what tells its type and what keeps numpy from cutting zeros."""
    if literal.dtype is not STRING:
        return literal.stored.view(np.uint8)
    texts = [
        b"b" + text if isinstance(text, bytes) else b"t" + str(text).encode("utf-8", "surrogatepass")
        for text in literal.stored
    ]
    return np.asarray([text + b"." for text in texts], dtype=np.bytes_)


def _literal(held: Any) -> Literal:
    if held.dtype.kind != "S":
        return Literal.packed(UINT8, held.shape, held)
    texts = np.empty(held.shape, dtype=object)
    for index, text in enumerate(held.tolist()):
        texts[index] = text[1:-1] if text[:1] == b"b" else text[1:-1].decode("utf-8", "surrogatepass")
    return Literal.of(texts, STRING)

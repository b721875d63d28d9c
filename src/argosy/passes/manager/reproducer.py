"""Writes what is needed to see a failing pass again, and shows modules to people.

A reproducer is two files: `<pass>-<digest>.txt`, the text form of the module that the pass was given, with
the error in comments on top, and beside it `<pass>-<digest>.npz` with the stored bytes of the constants
that the text names by their hash.
"""

from __future__ import annotations

import difflib
import hashlib
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from argosy.errors import EnvironmentError_, ModelError
from argosy.ir.dtype import UINT8
from argosy.ir.literal import Literal
from argosy.ir.literal_text import INLINE_ELEMENTS
from argosy.ir.module import Constant, Module
from argosy.ir.parser import parse_program
from argosy.ir.printer import FORMAT_VERSION, print_module
from argosy.ir.program import Program

__all__ = ["LITERAL_LIMIT", "diff_text", "read_reproducer", "write_reproducer"]

LITERAL_LIMIT: Final = 1 << 26
"""Most bytes of constants that go along with a reproducer; larger models name theirs by hash only."""


def write_reproducer(folder: Path, name: str, module: Module, error: Exception) -> Path:
    """Write the module that pass `name` failed on; returns the text file. Raises EnvironmentError_ for a bad folder."""
    body = print_module(module)
    told = "".join(f"# {line}\n" for line in f"pass {name}: {type(error).__name__}: {error}".splitlines())
    stem = f"{name}-{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    file = folder / f"{stem}.txt"
    named = _named_literals(module)
    if sum(literal.nbytes for literal in named.values()) > LITERAL_LIMIT:
        told += f"# its constants are over {LITERAL_LIMIT >> 20} MiB and were left out\n"
        named = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{told}argosy {FORMAT_VERSION}\n{body}", encoding="utf-8")
        if named:
            stored: dict[str, Any] = {digest: literal.stored.view(np.uint8) for digest, literal in named.items()}
            np.savez(file.with_suffix(".npz"), **stored)
    except OSError as problem:
        raise EnvironmentError_(f"a reproducer could not be written: {problem}", where=str(folder)) from problem
    return file


def read_reproducer(file: Path) -> Program:
    """The program of a reproducer, with its constants. Raises ModelError where one is missing."""
    sidecar = file.with_suffix(".npz")
    stored: dict[str, Literal] = {}
    if sidecar.exists():
        try:
            with np.load(sidecar, allow_pickle=False) as held:
                stored = {digest: Literal.packed(UINT8, held[digest].shape, held[digest]) for digest in held.files}
        except (OSError, ValueError, zipfile.BadZipFile) as problem:
            raise ModelError(f"the constants cannot be read: {problem}", where=str(sidecar)) from problem
    return parse_program(file.read_text(encoding="utf-8"), stored)


def diff_text(before: Module, after: Module, names: tuple[str, str] = ("before", "after")) -> str:
    """The unified diff of two modules' text forms."""
    lines = difflib.unified_diff(
        print_module(before).splitlines(), print_module(after).splitlines(), *names, lineterm=""
    )
    return "\n".join(lines)


def _named_literals(module: Module) -> dict[str, Literal]:
    """The constants that the text form names by hash, by that hash; strings have no stored bytes."""
    found: dict[str, Literal] = {}
    for instruction in module.walk():
        if isinstance(instruction.op, Constant):
            literal = instruction.op.literal
            if not literal.is_splat and literal.size > INLINE_ELEMENTS and literal.dtype.kind != "string":
                found.setdefault(literal.digest, literal)
    return found

"""The identity of a program: what artifacts compare to know that they were made of the same model.

`model_hash` is the SHA-256 of the canonical text: values by number, names of inputs and outputs but of no
node, constants by their content, symbols of the inputs by name and data-dependent ones by number. So it
does not depend on who exported the model, on names inside it, or on how the importer counts.
"""

from __future__ import annotations

import hashlib

from argosy.ir.printer import FORMAT_VERSION, Writer
from argosy.ir.program import Program

__all__ = ["model_hash"]


def model_hash(program: Program) -> str:
    """SHA-256, in hex digits, of the program's canonical text and the content of its constants.

    The text is hashed line by line; of a constant, only its digest, which a literal computes once.
    """
    state = hashlib.sha256(f"argosy {FORMAT_VERSION} canonical\n".encode())
    writer = Writer(canonical=True)
    for line in writer.module(program.main):
        state.update(f"{line}\n".encode())
    for line in writer.symbols():  # bounds are known, and hashed, once every symbol was met
        state.update(f"{line}\n".encode())
    return state.hexdigest()

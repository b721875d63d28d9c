"""Whether code for single sizes is that of the program: the first node that its bound dims make something else of.

Bisecting binds the dims as the compiler does, so that it would take what goes wrong there for the truth. What is
compared here is the program for every size with the bound one, both by ref, so that nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from argosy.debugging.blame import Blame, evaluated
from argosy.debugging.search import first_wrong
from argosy.debugging.symptom import Symptom
from argosy.ir.module import Module
from argosy.passes.manager import PassManager
from argosy.verification.code import Code
from argosy.verification.cutting import Cut, Truth

__all__ = ["bound_by", "first_misbound"]

_BINDS: Final = "bind_dims"


def bound_by(code: Code, module: Module, dims: Mapping[str, int]) -> Module:
    """The module with dims bound, by the phase that does so in front of a target's pipeline."""
    return PassManager(code.target.phases(code.options, dims)[:1]).run(module)


def first_misbound(truth: Truth, code: Code, dims: Mapping[str, int], symptom: Symptom) -> tuple[Cut, Blame] | None:
    """The first part of a program whose results change with the binding of its dims, and the pass to blame.

    `truth` is a run of the program for every size. None where nothing changes.
    """
    part = first_wrong(
        truth, lambda part: symptom.shows(lambda: evaluated(bound_by(code, part.program.main, dims), part), part)
    )
    if part is None:
        return None
    sizes = ", ".join(f"{name}={size}" for name, size in dims.items())
    why = f"bound to {sizes}, ref gets other results: the code for every size, without that --dim, has no such fault"
    return part, Blame("pass", _BINDS, ", ".join(part.nodes), why)

"""Checks the code of a machine against an independent answer: every output, and the instructions in between."""

from argosy.verification.parts import Parts, Saved, save_parts
from argosy.verification.reference import Reference, make_reference
from argosy.verification.report import CaseReport, Difference, InstructionReport, Report
from argosy.verification.single_op import Rounding, tolerance_of
from argosy.verification.tolerance import Tolerance
from argosy.verification.verifier import verify

__all__ = [
    "CaseReport",
    "Difference",
    "InstructionReport",
    "Parts",
    "Reference",
    "Report",
    "Rounding",
    "Saved",
    "Tolerance",
    "make_reference",
    "save_parts",
    "tolerance_of",
    "verify",
]

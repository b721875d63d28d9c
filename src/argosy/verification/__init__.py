"""Checks the code of a machine against an independent answer: every output, and the instructions in between."""

from argosy.verification.reference import Reference, make_reference
from argosy.verification.report import CaseReport, Difference, InstructionReport, Report
from argosy.verification.single_op import Rounding, tolerance_of
from argosy.verification.tolerance import Tolerance
from argosy.verification.verifier import verify

__all__ = [
    "CaseReport",
    "Difference",
    "InstructionReport",
    "Reference",
    "Report",
    "Rounding",
    "Tolerance",
    "make_reference",
    "tolerance_of",
    "verify",
]

"""What both verbs about ONNX's suite know: which cases, and how a packed model is told from another."""

from __future__ import annotations

import argparse
import hashlib
import re

import onnx

from tests.conformance.cases import Case, load_cases

__all__ = ["HOST_STEPS", "MODE", "MODEL", "STEM", "STRICT", "WHY", "add_only", "chosen", "fingerprint"]

STEM = "suite"
MODE, MODEL, WHY = "mode", "model", "why"
"""What a pack says about a case: how it was compiled, the hash of its model, and why not in the stricter way."""
STRICT, HOST_STEPS = "strict", "with host steps"


def add_only(parser: argparse.ArgumentParser) -> None:
    """The option that chooses cases."""
    parser.add_argument("--only", metavar="REGEX", default="", help="the cases whose id matches (default: all)")


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases asked for."""
    return [case for case in load_cases() if re.search(options.only, case.id)]


def fingerprint(model: onnx.ModelProto) -> str:
    """SHA-256 of a model: the suite builds its models anew wherever it runs, and code is for one of them."""
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()

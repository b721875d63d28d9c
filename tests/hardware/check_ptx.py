"""`check-ptx FOLDER`: portable code of a pack of `pack-checks` is finished by this device's driver, and right.

Of artifacts with portable code alone that code is chosen, beside code for another arch too, beside code for this device
not. Results agree with ONNX Runtime at two sizes of one artifact.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import argosy
from argosy.artifact.artifact import Artifact
from tests.conformance.judge import explain
from tests.hardware.packs import Packs
from tests.hardware.trials import CHECKS, Trial, read_trial, trial_names

__all__ = ["add", "complaints"]

_PORTABLE, _NATIVE = "portable", "beside native"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("check-ptx", help="the driver finishes portable code", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pack of pack-checks is")
    parser.add_argument("--device", default="cuda", help="what runs the artifacts (default: cuda)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, CHECKS)
    names = [name for name in trial_names(packs) if name.startswith(_PORTABLE)]
    good = 0
    for name in names:
        start = time.perf_counter()
        try:
            found = complaints(read_trial(packs, name), options.device)
        except Exception as error:  # noqa: BLE001 - whatever it raises fails the trial
            found = [explain(error)]
        good += not found
        seconds = time.perf_counter() - start
        sys.stdout.write(f"{name}: {'; '.join(found) or 'right'}, {seconds:.2f} s\n")
        sys.stdout.flush()
    sys.stdout.write(f"{good} of {len(names)} artifacts with portable code are right\n")
    return 0 if good == len(names) and names else 1


def complaints(trial: Trial, device: str) -> list[str]:
    """What is wrong with the choice among the variants, and with the results."""
    artifact = Artifact.open(trial.artifact)
    session = argosy.Session(artifact, device=device)
    (chosen,) = (variant for variant in artifact.variants if variant.words == session.variant)
    found = []
    if chosen.portable == trial.name.endswith(_NATIVE):
        found.append(f"{session.variant} was chosen:\n{session.why}")
    forms = {code.form for code in artifact.plan(chosen.key).code}
    if chosen.portable and forms != {"ptx"}:
        found.append(f"its code is {', '.join(sorted(forms))}")
    if chosen.portable and "the driver finishes it" not in session.why:
        found.append(f"the choice has another reason:\n{session.why}")
    return found + trial.mismatches(session)

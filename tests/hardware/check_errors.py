"""`check-errors FOLDER`: what goes wrong with a device has an error of its own, and leaves everything usable.

Artifacts for another arch, a newer driver or more memory, and code that the driver refuses, are refused in words; so is
every one where there is no device. Where memory runs out, in a run or at load, nothing leaks and the session goes on.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import argosy
from argosy.drivers.discovery import devices
from argosy.errors import DeviceError
from tests.conformance.judge import explain
from tests.hardware.pack_checks import SQUARES
from tests.hardware.packs import Packs
from tests.hardware.shortage import CHECKS_OF_MEMORY
from tests.hardware.trials import CHECKS

__all__ = ["REFUSED", "add", "refusal", "without_device"]

REFUSED: Final = {
    "foreign": ("it is for {note}, ", " is {arch}"),
    "old driver": ("its driver is too old: it has CUDA ", "the code needs 99.9"),
    "too large": ("bytes of memory, the code needs ",),
    "mistaken": ("the driver's load_module: ",),
}
"""What the error says of each artifact: `note` is the arch that it is for, `arch` the device's."""
_EXIT: Final = DeviceError.exit_code


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("check-errors", help="errors of a device, and what they leave", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pack of pack-checks is")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, CHECKS)
    squares = packs.content(SQUARES)
    checks: list[tuple[str, Callable[[], Sequence[str]]]] = [("without a device", partial(without_device, squares))]
    checks += [(name, partial(refusal, packs, name, "cuda")) for name in REFUSED]
    checks += [(name, partial(check, squares)) for name, check in CHECKS_OF_MEMORY]
    good = sum(_told(name, check) for name, check in checks)
    sys.stdout.write(f"{good} of {len(checks)} checks of errors are right\n")
    return 0 if good == len(checks) else 1


def _told(name: str, check: Callable[[], Sequence[str]]) -> bool:
    start = time.perf_counter()
    try:
        found = list(check())
    except Exception as error:  # noqa: BLE001 - whatever it raises fails the check
        found = [explain(error)]
    gc.collect()
    sys.stdout.write(f"{name}: {'; '.join(found) or 'right'}, {time.perf_counter() - start:.1f} s\n")
    sys.stdout.flush()
    return not found


def refusal(packs: Packs, name: str, device: str) -> list[str]:
    """What is wrong with the error that opening an artifact raises."""
    arch = devices()[0].arch
    words = [word.format(note=packs.about(name)["note"], arch=arch) for word in REFUSED[name]]
    try:
        argosy.Session(packs.content(name), device=device)
    except DeviceError as error:
        text = str(error)
        sys.stdout.write("".join(f"    {line}\n" for line in text.splitlines()))
        return [f"{word!r} is not in the error" for word in words if word not in text]
    return ["it was not refused"]


def without_device(artifact: bytes) -> list[str]:
    """What is wrong with the command's answer where the driver shows no device."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.argosy")
        path.write_bytes(artifact)
        done = subprocess.run(
            [sys.executable, "-m", "argosy", "run", str(path), "--device", "cuda"],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},  # noqa: TID251 - the driver reads it
            capture_output=True,
            text=True,
            check=False,
        )
    sys.stdout.write("".join(f"    {line}\n" for line in done.stderr.splitlines()))
    found = [] if done.returncode == _EXIT else [f"the exit code is {done.returncode}, not {_EXIT}"]
    return found + ([] if "no cuda driver finds a device here" in done.stderr else ["the error has other words"])

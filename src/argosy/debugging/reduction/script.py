"""Writes `reproduce.py`: a script that shows a failure again, on the files beside it, with the same options."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from argosy.debugging.reduction.checks import Check, CommandCheck, Verification
from argosy.debugging.reduction.outcome import Outcome
from argosy.targets.base import Target

__all__ = ["command_script", "verification_script"]

_COMMAND: Final = '''\
"""Runs a check on a small model; written by `argosy verify --reduce --check`.

Exit status 1 while the check finds what it looks for, 0 when that is gone.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = {{"{{model}}": str(HERE / "model.onnx"), "{{inputs}}": str(HERE / "inputs.npz")}}
COMMAND = {words!r}

words = []
for word in COMMAND:
    for place, path in PATHS.items():
        word = word.replace(place, path)
    words.append(word)
found = subprocess.run(words).returncode == 0
print("it is still there" if found else "it is gone")
sys.exit(1 if found else 0)
'''

_VERIFICATION: Final = '''\
"""Shows a failure of Argosy on a small model; written by `argosy verify --reduce`.

{told}

Exit status 1 while the failure is there, 0 when it is gone; another one where it can't be tried.
"""

import subprocess
import sys
import traceback
from pathlib import Path

import argosy
from argosy.errors import {refused}
from argosy.inputs.files import read_outputs
from argosy.options import CompileOptions, Dimensions, DimRequest
from argosy.verification import Tolerance

HERE = Path(__file__).resolve().parent
MODEL = HERE / "model.onnx"
OPTIONS = {options}
SECONDS = {seconds!r}


def agrees():
    """Whether the code and the reference agree, with the options of the command that found the failure."""
    types = argosy.load_onnx(MODEL).inputs
    report = argosy.verify(
        MODEL,
        targets=[{targets}],
        device={device},
        exact={exact},
        against={against},
        dims=OPTIONS.dims,
        inputs={{**dict.fromkeys(types), **read_outputs(HERE / "inputs.npz", types)}},
        tolerance={tolerance},
        options=OPTIONS,
    )
    print(report)
    return report.passed


def try_here():
    """Exit as the script does, unless this process crashes or hangs."""
    try:
        good = agrees()
    except ({refused}) as error:
        print(error)
        return error.exit_code
    except Exception:
        traceback.print_exc()
        good = False
    return 0 if good else 1


def try_in_child():
    """The same for a failure that no process survives."""
    try:
        code = subprocess.run([sys.executable, __file__, "--here"], timeout=SECONDS).returncode
        return 1 if code < 0 else code
    except subprocess.TimeoutExpired:
        print(f"it takes over {{SECONDS:g}} seconds")
        return 1


if __name__ == "__main__":
    code = {entry}
    print({{0: "the failure is gone", 1: "the failure is there"}}.get(code, "the failure was not looked for"))
    sys.exit(code)
'''


def command_script(check: Check) -> str:
    """The script that runs a command of the user; empty for a check that is a function."""
    return _COMMAND.format(words=list(check.words)) if isinstance(check, CommandCheck) else ""


def verification_script(verification: Verification, first: Outcome, seconds: float) -> str:
    """The script that verifies; in a child where the process crashes or hangs."""
    alone = first.kind in ("crash", "hang")
    told = f"{first.kind}: {first.told}".replace("\\", "\\\\").replace('"""', "'''")
    return _VERIFICATION.format(
        told=told,
        seconds=seconds,
        targets=", ".join(_expression(target) for target in verification.targets),
        device=_expression(verification.device),
        exact=_expression(verification.exact),
        against=_expression(verification.against),
        tolerance=_expression(verification.tolerance),
        options=_expression(verification.options),
        refused="EnvironmentError_, UsageError" if first.spoils else "DeviceError, EnvironmentError_, UsageError",
        entry='try_here() if "--here" in sys.argv else try_in_child()' if alone else "try_here()",
    )


def _expression(value: Any) -> str:
    """A value as Python makes it: of a dataclass, the fields that aren't as they are by themselves."""
    if isinstance(value, tuple):
        return f"({''.join(f'{_expression(item)}, ' for item in value)})"
    if not dataclasses.is_dataclass(value):
        return repr(value)
    given = [
        field for field in dataclasses.fields(value) if field.init and getattr(value, field.name) != _default(field)
    ]
    told = [f"{field.name}={_expression(getattr(value, field.name))}" for field in given]
    if isinstance(value, Target):
        return f"argosy.make_target({', '.join([repr(value.name), *told])})"
    return f"{type(value).__name__}({', '.join(told)})"


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()

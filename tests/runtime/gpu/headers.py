"""C headers of the drivers, as they come in Triton's wheel, and a compiler that answers questions about them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

pytest.importorskip("ziglang")
_TRITON: Final = importlib.util.find_spec("triton")
if _TRITON is None or _TRITON.origin is None:
    pytest.skip("the headers come with the package triton", allow_module_level=True)
_BACKENDS: Final = Path(_TRITON.origin).parent / "backends"

FLAGS: Final = {
    "cuda": ("-I", str(_BACKENDS / "nvidia/include")),
    "hip": ("-D__HIP_PLATFORM_AMD__", "-I", str(_BACKENDS / "amd/include")),
}
"""What the compiler is told to find the headers of an interface."""
INCLUDES: Final = {"cuda": "#include <cuda.h>\n", "hip": "#include <hip/hip_runtime_api.h>\n"}
_ABOVE: Final = 1 << 40
"""Added to numbers, so that the assembler is told each as one, zeros too."""


@dataclass(frozen=True)
class Argument:
    """A parameter by the header: bytes, and the bytes of what it points to (0 where it points to nothing known)."""

    size: int
    points_to: int


def zig_cc(*arguments: str, text: str = "") -> str:
    """What the compiler writes."""
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *arguments], input=text, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


@lru_cache(maxsize=2)
def _preprocessed(kind: str) -> str:
    text = zig_cc(*FLAGS[kind], "-w", "-E", "-P", "-x", "c", "-", text=INCLUDES[kind])
    return re.sub(r"\s+", " ", text)


def prototype(kind: str, function: str) -> str | None:
    """The parameters of a function as the header has them; None where it has no such function."""
    # A header that has made a newer version of a function the usual one calls both by that name.
    found = re.search(
        rf"\b(?:CUresult|hipError_t)\s+(?:\w+\s+)?{function}(?:_v\d)?\s*\(([^()]*)\)\s*;", _preprocessed(kind)
    )
    return found and found[1].strip()


def numbers(kind: str, expressions: list[str], head: str = "") -> list[int]:
    """What constant expressions of C are worth: the compiler puts them into a table, and nothing is run."""
    table = ",".join(f"(long long)({each}) + {_ABOVE}" for each in expressions)
    text = f"#include <stddef.h>\n{INCLUDES[kind]}{head}\nconst long long told[] = {{{table}}};\n"
    with TemporaryDirectory() as folder:
        written = Path(folder, "told.s")
        zig_cc(*FLAGS[kind], "-w", "-S", "-x", "c", "-", "-o", str(written), text=text)
        assembly = written.read_text(encoding="utf-8")
    return [int(number) - _ABOVE for number in re.findall(r"\.(?:quad|xword)\s+(-?\d+)", assembly)]


def signatures(kind: str, functions: list[str]) -> dict[str, list[Argument]]:
    """The arguments of functions: each parameter list is made a struct, whose members the compiler measures."""
    head, expressions, places = "", [], []
    for function in functions:
        parameters = prototype(kind, function)
        assert parameters is not None, f"the headers have no {function}"
        members = [] if parameters == "void" else [part.strip() for part in parameters.split(",")]
        head += f"struct of_{function} {{ {' '.join(f'{member};' for member in members)} }};\n"
        for member in members:
            name = re.search(r"(\w+)$", member)
            assert name, member
            value = f"((struct of_{function}*)0)->{name[1]}"
            pointed = f"sizeof(*{value})" if "*" in member and "void" not in member.split("*")[0] else "0"
            pointed = "sizeof(void*)" if member.count("*") == 2 else pointed
            expressions += [f"sizeof({value})", pointed]
            places.append(function)
    told = iter(numbers(kind, expressions, head))
    found: dict[str, list[Argument]] = {function: [] for function in functions}
    for function in places:
        found[function].append(Argument(next(told), next(told)))
    return found

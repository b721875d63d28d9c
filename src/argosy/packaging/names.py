"""Names and versions of Python packages: what is allowed, and the one form in which each is written.

Sources: the specifications of names, versions and extras of the Python packaging authority (PEP 503, 440, 685).
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Collection
from typing import Final

from argosy.errors import ArtifactError, UsageError

__all__ = [
    "RESERVED",
    "check_archs",
    "check_name",
    "check_version",
    "device_extra",
    "device_project",
    "file_part",
    "is_name",
    "local_segment",
    "module_name",
    "normalised",
    "weights_project",
]

_NAME: Final = re.compile(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]*[A-Z0-9]", re.IGNORECASE | re.ASCII)
_VERSION: Final = re.compile(
    r"([1-9][0-9]*!)?(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))*((a|b|rc)(0|[1-9][0-9]*))?"
    r"(\.post(0|[1-9][0-9]*))?(\.dev(0|[1-9][0-9]*))?",
    re.ASCII,
)
_TAKEN: Final = frozenset({"argosy", "numpy", "ml_dtypes", "msgspec", "pip"})
"""Modules that a machine of the fleet has already."""
RESERVED: Final = frozenset({"all", "common"})
"""What an arch can't be called: the index of all, and the release of what every machine needs."""
_LONGEST: Final = 100
"""Characters of a name: with the arch behind it, the version and the tags it is still the name of a file."""
_DIGITS: Final = 12


def normalised(name: str) -> str:
    """A name or extra as indexes compare it: lower case, runs of `-`, `_` and `.` as one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def file_part(name: str) -> str:
    """A name as it stands in the name of a wheel."""
    return normalised(name).replace("-", "_")


def is_name(name: str) -> bool:
    """Whether a package, an extra or an arch may be called so: it is then also a plain name of a file or folder."""
    return _NAME.fullmatch(name) is not None


def check_archs(archs: Collection[str], where: str) -> None:
    """Raise ArtifactError unless archs can be told apart in names of packages, folders and indexes."""
    known: dict[str, str] = {}
    for arch in archs:
        if not is_name(arch) or arch in RESERVED:
            raise ArtifactError(f"no package can be named after the arch {arch!r}", where=where)
        other = known.setdefault(device_extra(arch), arch)
        if other != arch:
            raise ArtifactError(f"the archs {other!r} and {arch!r} have one name as extras", where=where)


def module_name(name: str) -> str:
    """The module that a package of that name is imported as."""
    return file_part(name)


def check_name(name: str) -> str:
    """The normalised form of a name for a package. Raises UsageError where it can't be one, or can't be imported."""
    if not is_name(name):
        raise UsageError(
            f"{name!r} is no name for a package",
            hint="letters, digits, and '-', '_' or '.' between them: --name resnet50",
        )
    module = module_name(name)
    if not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(
            f"a package called {name!r} can't be imported: {module!r} is no name of a module",
            hint="begin with a letter, and take no word of Python's",
        )
    if module in _TAKEN or module in sys.stdlib_module_names:
        raise UsageError(f"a package called {name!r} would hide the module {module!r}", hint="take another name")
    if len(module) > _LONGEST:
        raise UsageError(f"the name has {len(module)} characters, at most {_LONGEST} are accepted")
    return normalised(name)


def check_version(version: str) -> str:
    """The version, which must be in its normal form. Raises UsageError where it is not."""
    if "+" in version:
        raise UsageError(
            f"{version!r} has a local segment", hint="leave out '+…': Argosy writes there what the wheels were made of"
        )
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"{version!r} is no version in normal form", hint="for example 1.2, 1.2.0rc1, 1.2.post1 or 1.2.dev3"
        )
    return version


def device_project(package: str, arch: str) -> str:
    """The name of the wheel with the code for an arch."""
    return f"{package}-{device_extra(arch)}"


def device_extra(arch: str) -> str:
    """The extra that asks for the code for an arch."""
    return normalised(f"device-{arch}")


def weights_project(package: str, number: int) -> str:
    """The name of a wheel with a share of the weights, counted from 1."""
    return f"{package}-weights-{number}"


def local_segment(digest: str) -> str:
    """The local segment of a version for a SHA-256: the first of its digits that are not a number.

    Numbers in a version are compared, and written, without leading zeros; text is kept as it is.
    """
    places = range(len(digest) - _DIGITS + 1)
    found = next(digest[at : at + _DIGITS] for at in places if not digest[at : at + _DIGITS].isdigit())
    return f"argosy.{found}"

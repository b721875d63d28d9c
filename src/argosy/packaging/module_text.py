"""The text of the module that a model's wheel installs."""

from __future__ import annotations

from string import Template
from typing import Final

__all__ = ["module_text"]

_TEXT: Final = Template('''\
"""$title, compiled by Argosy: `session()` makes it ready to run on this machine."""

from pathlib import Path
from typing import Any

import argosy

__all__ = ["artifact", "session"]
__version__ = "$version"

_FOLDER = Path(__file__).parent


def artifact() -> argosy.Artifact:
    """The model, its weights, and code for the archs whose wheels are installed: `pip install '$project[device-…]'`."""
    parts = [part for name in ("weights", "devices") for part in sorted((_FOLDER / name).glob("*.argosy"))]
    return argosy.Artifact.open(_FOLDER / "model.argosy", parts=parts)


def session(**options: Any) -> argosy.Session:
    """A session of the model on the best device that fits; `options` are those of `argosy.Session`."""
    return argosy.Session(artifact(), **options)
''')


def module_text(project: str, title: str, version: str) -> str:
    """The module of a project: `title` names it with its version, `version` is the full one."""
    return _TEXT.substitute(title=title, version=version, project=project)

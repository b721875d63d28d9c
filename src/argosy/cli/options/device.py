"""Options that choose what to run on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.parser import Parser

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.runtime.session import Session

__all__ = ["add_device_options", "open_session"]


def add_device_options(parser: Parser) -> None:
    """Device, exactness, weights from elsewhere."""
    group = parser.add_argument_group("device options")
    group.add_argument("--device", metavar="D", help="run on this device (default: the best variant that fits)")
    group.add_argument(
        "--emulate", dest="device", action="store_const", const="emulated", help="short for --device emulated"
    )
    group.add_argument("--exact", action="store_true", help="take no variant that was compiled for another arch")
    group.add_argument("--weights", metavar="FILE", help="where an artifact without weights finds them")


def open_session(artifact: Artifact, arguments: argparse.Namespace) -> Session:
    """A session as the options ask; raises DeviceError where nothing fits."""
    from argosy.runtime.session import Session

    return Session(artifact, device=arguments.device, exact=arguments.exact)

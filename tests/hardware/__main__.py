"""`python -m tests.hardware VERB`: what must be seen on a device, compiled on a machine that has none.

`pack-…` verbs compile here and write packs; `run-…` verbs judge there what the packs hold. `tests.hardware.packs` says
what a pack is. A verb is a module with `add`, which gives its parser a function `run` that returns the exit status.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tests.hardware import (
    check_errors,
    check_ptx,
    check_sanitizer,
    check_threads,
    pack_checks,
    pack_models,
    pack_parts,
    pack_suite,
    run_models,
    run_parts,
    run_suite,
)

VERBS = (
    pack_suite,
    run_suite,
    pack_models,
    run_models,
    pack_parts,
    run_parts,
    check_threads,
    check_sanitizer,
    pack_checks,
    check_ptx,
    check_errors,
)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hardware", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in VERBS:
        verb.add(verbs)
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    logging.getLogger("argosy").setLevel(logging.ERROR)  # many cases are odd on purpose
    sys.exit(main())

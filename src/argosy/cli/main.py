"""The entry: words to a verb, errors to messages and exit codes. The only place that does either."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from argosy import __version__
from argosy.cli.console import Console, Painter, table
from argosy.cli.later import LATER_VERBS
from argosy.cli.log import logging_to
from argosy.cli.migraphx import FOREIGN_VERBS
from argosy.cli.options.common import add_common_options
from argosy.cli.parser import Parser
from argosy.cli.respell import respell
from argosy.cli.verb import GROUPS, VERBS, Verb
from argosy.errors import ArgosyError, EnvironmentError_, InternalError, UsageError
from argosy.registry import did_you_mean

__all__ = ["main", "make_parser", "overview"]

EXIT_CODES: Final = (
    (0, "good"),
    (1, "verify found a mismatch, diff a difference"),
    (2, "usage"),
    (3, "model"),
    (4, "compile"),
    (5, "artifact"),
    (6, "device, or no variant fits"),
    (7, "environment: a missing package, a full disk"),
    (70, "our bug"),
)
_YOUNG: Final = 1_000_000
"""New objects after which Python looks for cycles among them."""
_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141
"""What a shell gives for a program that SIGINT, or SIGPIPE, ends."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (of this process, by default) and give its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a terminal's encoding lacks must not end in an error
    try:
        with _rare_collections():
            return _main(words, console)
    except ArgosyError as error:
        console.error(f"{error.where}: {error.what}" if error.where else error.what, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough. What is still in the buffer must not fail once more when Python ends.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return _BROKEN_PIPE


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for cycles of garbage less often: a verb makes few, and keeps most of what it allocates to its end."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _main(words: list[str], console: Console) -> int:
    if len(words) > 1 and words[0] == "help":
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        console.write(overview(Painter.of(sys.stdout)))
        return 0
    if words[0] in ("-V", "-v", "--version"):
        console.write(f"argosy {__version__}")
        return 0
    verb = _find_verb(words)
    parser = make_parser(verb)
    if _asks_for_help(words[1:]):
        console.write(parser.help_text(console.paint))
        return 0
    arguments = parser.parse(respell(verb.name, words[1:]))
    return _run(verb, arguments)


def _asks_for_help(words: Sequence[str]) -> bool:
    before = words[: words.index("--")] if "--" in words else words
    return "-h" in before or "--help" in before


def _find_verb(words: Sequence[str]) -> Verb:
    name = words[0]
    known = [key for key, _ in VERBS.items()]
    if name.startswith("-"):
        late = next((word for word in words if word in known), "")
        usage = f"argosy {late} {name} …" if late else "argosy VERB [options]; argosy --help lists the verbs"
        raise UsageError(f"the verb comes first, found {name!r}", hint=usage)
    name = FOREIGN_VERBS.get(name, name)
    verb = VERBS.get(name)
    if name in LATER_VERBS:
        raise UsageError(f"this version has no verb {name!r}", hint="argosy --help lists the verbs")
    if verb is None:
        raise UsageError(f"there is no verb {name!r}", hint=did_you_mean(name, known) or f"verbs: {', '.join(known)}")
    return verb


def make_parser(verb: Verb) -> Parser:
    """The parser of a verb, with the options that every verb has."""
    parser = Parser(f"argosy {verb.name}", verb.summary, examples=verb.examples)
    verb.configure(parser)
    add_common_options(parser)
    return parser


def _run(verb: Verb, arguments: argparse.Namespace) -> int:
    """Run the verb. What is not an error of ours becomes one here, its traceback goes to the log."""
    console = Console(quiet=arguments.quiet)
    with logging_to(arguments.log_level, arguments.log_file) as log:
        try:
            code = verb.run(arguments, console)
            sys.stdout.flush()
        except (KeyboardInterrupt, BrokenPipeError):
            raise
        except ArgosyError as error:
            log.debug("argosy %s failed", verb.name, exc_info=error)
            raise
        except MemoryError:
            raise EnvironmentError_("there is not enough memory") from None
        except OSError as error:
            log.debug("argosy %s failed", verb.name, exc_info=error)
            raise EnvironmentError_(error.strerror or str(error), where=str(error.filename or "")) from None
        except Exception as error:
            log.debug("argosy %s failed", verb.name, exc_info=error)
            raise InternalError(
                f"{type(error).__name__}: {error}",
                where=f"argosy {verb.name}",
                hint="this is a defect of ours: please report it; --log-level debug shows the traceback",
            ) from error
        return code


def overview(paint: Painter) -> str:
    """The help of the whole program."""
    lines = [
        f"{paint('usage:', 'bold')} argosy VERB [options]",
        "",
        "Compile an ONNX model once, on any machine, into one file that runs on every GPU and CPU of a fleet.",
    ]
    verbs = [verb for _, verb in VERBS.items()]
    width = max(len(verb.name) for verb in verbs)
    for group in GROUPS:
        lines += ["", paint(f"{group}:", "bold")]
        lines += [
            f"  {paint(verb.name, 'cyan')}{'':{width - len(verb.name) + 2}}{verb.summary}"
            for verb in verbs
            if verb.group == group
        ]
    lines += ["", paint("exit codes:", "bold"), *(f"  {line}" for line in table(EXIT_CODES, right=(0,)))]
    lines += ["", "argosy VERB --help says more of a verb; argosy --version the version."]
    return "\n".join(lines)

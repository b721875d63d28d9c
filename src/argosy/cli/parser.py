"""An argparse parser that speaks like the rest of Argosy: grouped and coloured help, suggestions, UsageError.

Help is laid out here rather than by argparse, whose layouts and colours differ from one Python to the next.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from argosy.cli.console import Painter
from argosy.errors import UsageError
from argosy.registry import did_you_mean

__all__ = ["Parser"]

_NAMES: Final = 30
"""Width of the column of options."""


class Parser(argparse.ArgumentParser):
    """The parser of one verb."""

    def __init__(self, prog: str, summary: str, *, examples: Sequence[tuple[str, str]] = (), closing: str = "") -> None:
        super().__init__(prog=prog, description=summary, add_help=False, allow_abbrev=False)
        self._examples = tuple(examples)
        self._closing = closing
        self.add_argument("-h", "--help", action="store_true", help=argparse.SUPPRESS)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The options and values in `words`; raises UsageError with a suggestion for what is not known."""
        arguments, unknown = self.parse_known_args(list(words))
        if unknown:
            self._refuse(unknown[0])
        return arguments

    def options(self) -> list[str]:
        """Every option that the help shows."""
        return [
            name
            for action in self._actions
            if action.help is not argparse.SUPPRESS
            for name in action.option_strings
            if name.startswith("--")
        ]

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            raise UsageError(f"one argument too many: {word!r}", hint=f"usage: {self.usage_line()}")
        name = word.partition("=")[0]
        hint = did_you_mean(name, self.options()) or f"{self.prog} --help lists the options"
        raise UsageError(f"{self.prog} has no option {name!r}", hint=hint)

    def error(self, message: str) -> NoReturn:
        """What argparse found wrong, as a UsageError."""
        if message.startswith("the following arguments are required: "):
            missing = message.partition(": ")[2]
            raise UsageError(f"{missing} is missing", hint=f"usage: {self.usage_line()}")
        raise UsageError(message, hint=f"usage: {self.usage_line()}")

    def usage_line(self) -> str:
        """The verb with its positional arguments."""
        words = [self.prog, *(_metavar(action) for action in self._actions if not action.option_strings), "[options]"]
        return " ".join(words)

    def help_text(self, paint: Painter, width: int | None = None) -> str:
        """The help: usage, what the verb does, its groups of options, examples."""
        width = min(width or shutil.get_terminal_size().columns, 110)
        lines = [f"{paint('usage:', 'bold')} {self.usage_line()}", ""]
        lines += textwrap.wrap(self.description or "", width)
        for group in self._action_groups:
            shown = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001
            if not shown:
                continue
            title = "arguments" if group.title == "positional arguments" else group.title or ""
            lines += ["", paint(f"{title}:", "bold")]
            for action in shown:
                lines += _action_lines(action, paint, width)
        if self._closing:
            lines += ["", *(line for part in self._closing.split("\n") for line in textwrap.wrap(part, width) or [""])]
        if self._examples:
            lines += ["", paint("examples:", "bold")]
            for command, meaning in self._examples:
                lines += [f"  {paint(command, 'green')}", f"      {meaning}"]
        return "\n".join(lines)


def _metavar(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest.upper())
    if action.nargs == "?":
        return f"[{name}]"
    if action.nargs == "*":
        return f"[{name}…]"
    return f"{name}…" if action.nargs == "+" else name


def _invocation(action: argparse.Action, paint: Painter) -> tuple[str, int]:
    """How an option or argument is written, painted, and its width without the paint."""
    if not action.option_strings:
        return paint(_metavar(action), "cyan"), len(_metavar(action))
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return paint(names, "cyan"), len(names)
    value: Any = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return f"{paint(names, 'cyan')} {value}", len(names) + 1 + len(str(value))


def _action_lines(action: argparse.Action, paint: Painter, width: int) -> list[str]:
    text, length = _invocation(action, paint)
    told = textwrap.wrap((action.help or "").replace("%%", "%"), max(width - _NAMES - 2, 30))
    if length > _NAMES - 2:
        return [f"  {text}", *(f"  {'':{_NAMES}}{line}" for line in told)]
    lines = [f"  {text}{'':{_NAMES - length}}{told[0] if told else ''}"]
    return lines + [f"  {'':{_NAMES}}{line}" for line in told[1:]]

"""Words of the IR's text form: tokens, plain names and quoted strings, and a cursor over them.

Printer and parser share this file, so that what one writes the other reads. It knows nothing of programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from argosy.errors import ModelError
from argosy.ir.dtype import DTYPES

__all__ = [
    "RESERVED",
    "Cursor",
    "Token",
    "is_value_name",
    "is_word",
    "quote",
    "quote_bytes",
    "tokenize",
    "unquote",
    "unquote_bytes",
]

T = TypeVar("T")

RESERVED: Final = frozenset(
    {"none", "true", "false", "nan", "inf", "sequence", "optional", "map", "module", "return", "as", "from"}
    | {"floordiv", "ceildiv", "mod", "min", "max"}
    | set(DTYPES)
)
"""Words that mean something of their own where a symbol may stand; symbols of these names are quoted."""

_TOKEN: Final = re.compile(
    r"""
    (?P<space>  [ \t\r\n]+ | \#[^\n]* )
  | (?P<value>  % (?: [A-Za-z_][\w.]* | \d+ ) )
  | (?P<digest> sha256: [0-9a-f]{64} )
  | (?P<bits>   0x [0-9a-f]+ )
  | (?P<float>  \d+ (?: \.\d+ (?: e [+-]? \d+ )? | e [+-]? \d+ ) )
  | (?P<int>    \d+ )
  | (?P<string> " (?: [^"\\\n] | \\[^\n] )* " )
  | (?P<symbol> \$" (?: [^"\\\n] | \\[^\n] )* " )
  | (?P<bytes>  b" [0-9a-f]* " )
  | (?P<word>   [A-Za-z_]\w* )
  | (?P<mark>   \.\. | [()\[\]{},:;=|*+\-@] )
  | (?P<error>  . )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VALUE_NAME: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
# What can't stand in a line of UTF-8 as it is: quotes, controls, line separators and lone surrogates.
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ESCAPE: Final = re.compile(r'\\(?:(["\\n])|u\{([0-9a-f]{1,6})\})')


class Token(NamedTuple):
    """A piece of the text: its kind (a group of the pattern, or `end`), its characters, and where it starts."""

    kind: str
    text: str
    offset: int


def is_word(name: str) -> bool:
    """Whether `name` may stand in the text without quotes."""
    return _WORD.fullmatch(name) is not None


def is_value_name(name: str) -> bool:
    """Whether `%name` is a token; dots are welcome, since weights are called `layer1.weight`."""
    return _VALUE_NAME.fullmatch(name) is not None


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if character in '"\\':
        return f"\\{character}"
    return "\\n" if character == "\n" else f"\\u{{{ord(character):x}}}"


def quote(text: str) -> str:
    """`text` in double quotes, on one line, with everything that UTF-8 or a reader can't hold escaped."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def unquote(quoted: str) -> str:
    """The inverse of `quote`; raises ValueError for an unknown escape."""
    inner = quoted[1:-1]
    if "\\" not in inner:
        return inner
    parts: list[str] = []
    position = 0
    while (start := inner.find("\\", position)) >= 0:
        found = _ESCAPE.match(inner, start)
        if found is None:
            raise ValueError(f"unknown escape {inner[start : start + 2]}")
        plain, code = found.groups()
        parts.append(inner[position:start])
        parts.append(chr(int(code, 16)) if code else "\n" if plain == "n" else plain)
        position = found.end()
    parts.append(inner[position:])
    return "".join(parts)


def quote_bytes(raw: bytes) -> str:
    """`raw` as `b"…"` in hex digits."""
    return f'b"{raw.hex()}"'


def unquote_bytes(quoted: str) -> bytes:
    """The inverse of `quote_bytes`; raises ValueError for an odd number of digits."""
    return bytes.fromhex(quoted[2:-1])


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, without spaces and comments, closed by one of kind `end`.

    Raises ModelError, naming line and column, at a character that starts no token.
    """
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind == "error":
            raise ModelError(f"unexpected character {found.group()!r}", where=_place(text, found.start()))
        if kind != "space":
            tokens.append(Token(kind, found.group(), found.start()))
    tokens.append(Token("end", "the end of the text", len(text)))
    return tokens


def _place(text: str, offset: int) -> str:
    line = text.count("\n", 0, offset) + 1
    return f"line {line}, column {offset - text.rfind(chr(10), 0, offset)}"


class Cursor:
    """Walks over the tokens of a text and says where something else was expected."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self.position = 0

    @property
    def token(self) -> Token:
        """The token at the cursor."""
        return self._tokens[self.position]

    @property
    def following(self) -> Token:
        """The token after the one at the cursor; at the end, that again."""
        return self._tokens[min(self.position + 1, len(self._tokens) - 1)]

    def where(self, position: int) -> str:
        """Line and column of a token, both counted from 1."""
        return _place(self._text, self._tokens[position].offset)

    def fault(self, expected: str, position: int | None = None) -> ModelError:
        """The error that something else stands at `position`, the cursor if not given."""
        at = self.position if position is None else position
        token = self._tokens[at]
        found = token.text if token.kind == "end" else repr(token.text)
        return ModelError(f"expected {expected}, found {found}", where=self.where(at))

    def take(self, mark: str) -> bool:
        """Step over the punctuation mark if it is next."""
        token = self._tokens[self.position]
        if token.kind == "mark" and token.text == mark:
            self.position += 1
            return True
        return False

    def take_word(self, word: str) -> bool:
        """Step over the word if it is next."""
        token = self._tokens[self.position]
        if token.kind == "word" and token.text == word:
            self.position += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        """Step over the punctuation mark that must come."""
        if not self.take(mark):
            raise self.fault(f"{mark!r}")

    def expect_word(self, word: str) -> None:
        """Step over the word that must come."""
        if not self.take_word(word):
            raise self.fault(f"{word!r}")

    def next(self, kind: str, expected: str) -> str:
        """Step over the token of this kind that must come, and give its text."""
        token = self._tokens[self.position]
        if token.kind != kind:
            raise self.fault(expected)
        self.position += 1
        return token.text

    def word(self) -> str:
        """A plain word."""
        return self.next("word", "a word")

    def value_name(self) -> str:
        """`%name` or `%number`."""
        return self.next("value", "a value such as %x")

    def name(self) -> str:
        """A name, in quotes where it is no plain word."""
        return self.word() if self.token.kind == "word" else self.string()

    def string(self) -> str:
        """A string in double quotes."""
        return self.convert("string", "a string in double quotes", unquote)

    def integer(self) -> int:
        """A whole number, which may be negative."""
        negative = self.take("-")
        number: int = self.convert("int", "a whole number", int)
        return -number if negative else number

    def convert(self, kind: str, expected: str, convert: Callable[[str], T]) -> T:
        """`next`, converted; what `convert` refuses by ValueError is an error of the text."""
        at = self.position
        text = self.next(kind, expected)
        try:
            return convert(text)
        except ValueError as error:
            raise ModelError(f"expected {expected}: {error}", where=self.where(at)) from None

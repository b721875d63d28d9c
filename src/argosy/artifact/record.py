"""Records: the frozen structs that an artifact is written in, and their one encoding in JSON and MessagePack.

The encoding is canonical: fields and keys sorted, defaults left out, no spaces. What decodes is encoded
again and must give the same bytes, so a file can't say the same thing in two ways, repeat a key (which
readers resolve differently), or hide a field that this version does not know. A newer schema minor of the same
major may add fields: then `exact=False` skips them.

Defaults of record fields are None, False, 0 or empty: only those are recognised, and left out, by identity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from argosy.errors import ArtifactError
from argosy.ir.dtype import DTYPES

__all__ = [
    "MAX_RANK",
    "MAX_TEXT",
    "Codec",
    "Record",
    "check_dims",
    "check_dtype",
    "check_hash",
    "check_mapping",
    "check_size",
    "check_text",
    "refuse",
]

MAX_TEXT: Final = 1 << 16
MAX_RANK: Final = 64
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of everything that is written into an artifact."""


R = TypeVar("R", bound=Record)


class Codec(Generic[R]):
    """Encodes and decodes records of one kind. Decoding raises ArtifactError for any bytes that are not canonical."""

    def __init__(self, kind: type[R]) -> None:
        self._json_encoder = msgspec.json.Encoder(order="sorted")
        self._msgpack_encoder = msgspec.msgpack.Encoder(order="sorted")
        self._json_decoder = msgspec.json.Decoder(kind)
        self._msgpack_decoder = msgspec.msgpack.Decoder(kind)

    def to_json(self, record: R) -> bytes:
        """The canonical JSON of `record`."""
        return self._encode(self._json_encoder, record)

    def to_msgpack(self, record: R) -> bytes:
        """The canonical MessagePack of `record`."""
        return self._encode(self._msgpack_encoder, record)

    def from_json(self, raw: bytes, *, where: str, exact: bool = True) -> R:
        """The record in `raw`; `where` names it in errors."""
        return self._decode(raw, self._json_decoder, self._json_encoder, where, exact=exact)

    def from_msgpack(self, raw: bytes, *, where: str, exact: bool = True) -> R:
        """The record in `raw`; `where` names it in errors."""
        return self._decode(raw, self._msgpack_decoder, self._msgpack_encoder, where, exact=exact)

    @staticmethod
    def _encode(encoder: msgspec.json.Encoder | msgspec.msgpack.Encoder, record: R) -> bytes:
        try:
            return encoder.encode(record)
        except (OverflowError, UnicodeError, RecursionError) as error:
            raise ArtifactError(f"a {type(record).__name__} can't be written: {error}") from error

    @staticmethod
    def _decode(
        raw: bytes,
        decoder: msgspec.json.Decoder[R] | msgspec.msgpack.Decoder[R],
        encoder: msgspec.json.Encoder | msgspec.msgpack.Encoder,
        where: str,
        *,
        exact: bool,
    ) -> R:
        try:
            record = decoder.decode(raw)
            if exact and encoder.encode(record) != raw:
                raise refuse(where, _difference(raw, record, decoder))
        # A JSON integer may exceed what an encoder writes (OverflowError) or what Python parses (ValueError);
        # a MessagePack key may be a map, which no dict takes (TypeError).
        except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError, TypeError) as error:
            raise refuse(where, f"it is damaged: {error}") from error
        return record


def _difference(raw: bytes, record: Record, decoder: msgspec.json.Decoder[R] | msgspec.msgpack.Decoder[R]) -> str:
    """What bytes that decode to `record` have that the record has not, in words."""
    decode = msgspec.json.decode if isinstance(decoder, msgspec.json.Decoder) else msgspec.msgpack.decode
    unknown = _unknown_field(decode(raw), msgspec.to_builtins(record), "")
    if unknown:
        return f"the field {unknown!r} is unknown to this schema version"
    return "it is not in canonical form (a repeated key, an explicit default, or another order)"


def _unknown_field(found: Any, known: Any, path: str) -> str:
    """Path of the first field of `found` that `known` lacks; defaults, which are left out, do not count."""
    if isinstance(found, dict) and isinstance(known, dict):
        for key, value in found.items():
            if key not in known and value not in (None, False, 0, "", [], {}):
                return f"{path}.{key}"
            deeper = _unknown_field(value, known.get(key), f"{path}.{key}")
            if deeper:
                return deeper
    elif isinstance(found, (list, tuple)) and isinstance(known, (list, tuple)):
        for index, (left, right) in enumerate(zip(found, known, strict=False)):
            deeper = _unknown_field(left, right, f"{path}[{index}]")
            if deeper:
                return deeper
    return ""


# --------------------------------------------------------------------------------------------- checks


def refuse(where: str, what: str) -> ArtifactError:
    """The error for a record that breaks a rule."""
    return ArtifactError(what, where=where, hint="copy or compile the artifact again")


def check_hash(value: str, where: str) -> None:
    """Refuse what is not a SHA-256 in lower-case hex digits."""
    if _HASH.fullmatch(value) is None:
        raise refuse(where, f"{value[:80]!r} is not a SHA-256 in hex digits")


def check_text(value: str, where: str, what: str, *, empty: bool = False) -> None:
    """Refuse a text that is too long, or empty where it must not be."""
    if not value and not empty:
        raise refuse(where, f"{what} is empty")
    if len(value) > MAX_TEXT:
        raise refuse(where, f"{what} has {len(value)} characters; at most {MAX_TEXT} are accepted")


def check_size(size: int | str, where: str, what: str) -> None:
    """Refuse a size below 0 or beyond 63 bits; text is a dim expression."""
    if isinstance(size, str):
        check_text(size, where, what)
    elif not 0 <= size < 1 << 63:
        raise refuse(where, f"{what} is {size}")


def check_dtype(name: str, where: str) -> None:
    """Refuse an unknown element type."""
    if name not in DTYPES:
        raise refuse(where, f"unknown element type {name[:80]!r}")


def check_dims(dims: tuple[int | str, ...], where: str) -> None:
    """Refuse too many dims, negative ones and ones beyond 63 bits; text is a dim expression."""
    if len(dims) > MAX_RANK:
        raise refuse(where, f"{len(dims)} dims; at most {MAX_RANK} are accepted")
    for dim in dims:
        if isinstance(dim, str):
            check_text(dim, where, "a dim")
        elif not 0 <= dim < 1 << 63:
            raise refuse(where, f"the dim {dim} is out of range")


def check_mapping(values: Mapping[str, object], where: str) -> None:
    """Refuse empty and overlong keys, and overlong texts as values."""
    for key, value in values.items():
        check_text(key, where, "a key")
        if isinstance(value, str):
            check_text(value, where, f"the value of {key!r}", empty=True)

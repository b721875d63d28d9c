"""Ops on strings. Values are object arrays of Python strings; these run on the host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import BOOL, INT64, STRING, Array, DType
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.operands import present
from argosy.ops.shapes import broadcast

__all__ = ["FormatNumbers", "MapLabels", "ParseNumbers", "RegexMatch", "StringConcat", "StringNormalize", "StringSplit"]


def _strings(values: Any, shape: tuple[int, ...]) -> Array:
    """Python strings as an object array of `shape`."""
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


def _need_strings(operand: Value | None) -> TensorType:
    tensor = present(operand).tensor
    if tensor.dtype is not STRING:
        raise ModelError(f"found {tensor}, expected strings")
    return tensor


@register
@dataclass(frozen=True, slots=True)
class FormatNumbers(Op):
    """Numbers as strings: the shortest text that reads back as the same number of that type; bools as 1 and 0."""

    name = "format_numbers"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(STRING, present(operands[0]).tensor.dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        if x.dtype.kind == "b":
            x = x.astype(np.int8)
        elif x.dtype.kind == "V":
            x = x.astype(np.float32)
        return (_strings([str(entry) for entry in x.reshape(-1)], x.shape),)


@register
@dataclass(frozen=True, slots=True)
class ParseNumbers(Op):
    """Strings as numbers of `dtype`: plain or scientific notation, INF and NaN in any case; integers round to zero."""

    name = "parse_numbers"
    dtype: DType

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.dtype, _need_strings(operands[0]).dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        texts = np.asarray(values[0], object)
        numbers = [self._parse(str(text)) for text in texts.reshape(-1)]
        storage = self.dtype.compute.numpy
        return (np.array(numbers, storage).astype(self.dtype.numpy).reshape(texts.shape),)

    def _parse(self, text: str) -> float | int | bool:
        try:
            if self.dtype.is_integer:
                number = _parse_integer(text)
                least = -(1 << (self.dtype.bits - 1)) if self.dtype.kind == "int" else 0
                if not least <= number < least + (1 << self.dtype.bits):
                    raise OverflowError
                return number
            return bool(float(text)) if self.dtype.kind == "bool" else float(text)
        except (ValueError, OverflowError):
            raise ModelError(f"the string {text!r} is no number that fits {self.dtype}") from None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))


@register
@dataclass(frozen=True, slots=True)
class StringConcat(Op):
    """The strings of two operands joined element by element, broadcast."""

    name = "string_concat"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(STRING, broadcast(*(_need_strings(operand).shape for operand in operands))),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        left, right = (np.asarray(value, object) for value in values)
        return (np.asarray(np.add(left, right), object),)


@register
@dataclass(frozen=True, slots=True)
class StringSplit(Op):
    """Each string cut at the delimiter (at white space where empty), at most `most` times where given.

    Results: the parts along a new last axis, filled up with empty strings; the number of parts, int64.
    """

    name = "string_split"
    delimiter: str = ""
    most: int | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor = _need_strings(operands[0])
        return (tensor.with_dims((*tensor.shape, fresh("parts"))), TensorType(INT64, tensor.shape))

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(STRING, None), TensorType(INT64, None))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        texts = np.asarray(values[0], object)
        limit = -1 if self.most is None else self.most
        parts = [str(text).split(self.delimiter or None, limit) for text in texts.reshape(-1)]
        counts = np.array([len(part) for part in parts], np.int64)
        width = int(counts.max(initial=0))
        filled = [text for part in parts for text in (*part, *[""] * (width - len(part)))]
        return (_strings(filled, (*texts.shape, width)), counts.reshape(texts.shape))


@register
@dataclass(frozen=True, slots=True)
class StringNormalize(Op):
    """The strings without stop words, then in lower or upper case: ONNX StringNormalizer, on [count] or [1, count].

    Where nothing is left, one empty string is.
    """

    name = "string_normalize"
    stopwords: tuple[str, ...] = ()
    case_change: str = "NONE"
    case_sensitive: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor = _need_strings(operands[0])
        if tensor.rank not in (1, 2):
            raise ModelError(f"found {tensor}, expected [count] or [1, count]")
        left = tensor.shape[-1] if not self.stopwords and isinstance(tensor.shape[-1], int) else fresh("left", lower=1)
        if isinstance(left, int):
            left = max(left, 1)
        return (tensor.with_dims((*tensor.shape[:-1], left)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        texts = np.asarray(values[0], object)
        if texts.ndim == 2 and texts.shape[0] != 1:
            raise ModelError(f"found the shape {list(texts.shape)}, expected [count] or [1, count]")
        stop = set(self.stopwords) if self.case_sensitive else {word.lower() for word in self.stopwords}
        kept = [str(text) for text in texts.reshape(-1)]
        kept = [text for text in kept if (text if self.case_sensitive else text.lower()) not in stop]
        if self.case_change != "NONE":
            kept = [text.lower() if self.case_change == "LOWER" else text.upper() for text in kept]
        kept = kept or [""]
        return (_strings(kept, (*texts.shape[:-1], len(kept))),)


@register
@dataclass(frozen=True, slots=True)
class RegexMatch(Op):
    """True where the whole string matches the pattern."""

    name = "regex_match"
    pattern: str

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        self._compiled()
        return (TensorType(BOOL, _need_strings(operands[0]).dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        texts, compiled = np.asarray(values[0], object), self._compiled()
        found = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1)]
        return (np.array(found, np.bool_).reshape(texts.shape),)

    def _compiled(self) -> re.Pattern[str]:
        # ONNX means RE2's syntax; what Python spells otherwise or lacks is refused rather than matched wrongly.
        if "[[:" in self.pattern:
            raise ModelError(f"the pattern {self.pattern!r} holds a POSIX character class, which is not supported")
        try:
            return re.compile(self.pattern.replace(r"\z", r"\Z"))
        except re.error as error:
            raise ModelError(f"the pattern {self.pattern!r} is not understood: {error}") from None


@register
@dataclass(frozen=True, slots=True)
class MapLabels(Op):
    """The value that stands beside the key equal to `x`, or the default. Operands: x, keys, values, default.

    Keys are 1-D; of equal ones the last counts; a NaN key matches NaN.
    """

    name = "map_labels"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, keys, values, default = (present(operand) for operand in operands)
        if keys.dtype is not x.dtype:
            raise ModelError(f"the keys are {keys.dtype}, expected {x.dtype} as of the input")
        if default.dtype is not values.dtype or keys.shape != values.shape or keys.rank != 1:
            raise ModelError(f"keys {keys.type}, values {values.type} and default {default.type} do not fit together")
        return (TensorType(values.dtype, x.tensor.dims),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(present(operands[2]).dtype, present(operands[0]).tensor.dims),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, keys, results, default = (np.asarray(value) for value in values)
        if not keys.size:
            return (np.broadcast_to(default.reshape(()), x.shape),)
        ordered, last = np.unique(keys[::-1], return_index=True)  # the first of the reversed is the last
        places = np.minimum(np.searchsorted(ordered, x), ordered.size - 1)
        equal = ordered[places] == x
        if x.dtype.kind == "f":
            equal |= np.isnan(ordered[places]) & np.isnan(x)
        return (np.where(equal, results[::-1][last][places], default.reshape(())),)

"""Ops on strings. Values are object arrays of Python strings; these run on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import STRING, Array, DType
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.operands import present

__all__ = ["FormatNumbers", "ParseNumbers"]


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
                return _parse_integer(text)
            return bool(float(text)) if self.dtype.kind == "bool" else float(text)
        except (ValueError, OverflowError):
            raise ModelError(f"the string {text!r} is no number that fits {self.dtype}") from None


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))

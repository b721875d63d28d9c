"""Signal processing: the discrete Fourier transform, frames of a signal, and the matrix of the mel scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import DimLike, equal, floordiv
from argosy.ir.dtype import Array, DType, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import number, numbers, present, steering
from argosy.ops.shapes import normalize_axis

__all__ = ["Fourier", "Frames", "MelWeights"]


def _one(values: tuple[DimLike, ...] | None, what: str) -> DimLike | None:
    if values is None:
        return None
    if len(values) != 1:
        raise ModelError(f"{what} must be one number, found {len(values)}")
    return values[0]


def _number(attribute: DimLike | None, value: Any, what: str) -> int:
    if attribute is not None:
        return int(attribute)
    if value is None or np.size(value) != 1:
        raise ModelError(f"{what} must be one number")
    return int(np.reshape(value, ())[()])


@register
@dataclass(frozen=True, slots=True)
class Fourier(Op):
    """The discrete Fourier transform of `x` along `axis`; the last axis holds the real, or real and imaginary parts.

    Operands: x, [length], [axis], the latter two where the attribute is None (an absent length is that of
    the axis). The signal is cut or padded with zeros to `length`. `onesided` leaves out the mirrored half:
    length // 2 + 1 elements stay; its inverse takes that half (the length then defaults to 2 (n - 1)) and
    gives real numbers. The inverse is divided by the length. Short floats are computed in float32.
    """

    name = "dft"
    length: DimLike | None = None
    axis: int | None = None
    inverse: bool = False
    onesided: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, length, axis = (*operands, None, None)[:3]
        source = present(x)
        dims = list(source.shape)
        if not source.dtype.is_float or source.rank < 2:
            raise ModelError(f"expected floats of rank 2 or more, found {source.type}")
        if equal(dims[-1], 1) is False and equal(dims[-1], 2) is False:
            raise ModelError(f"the last axis must hold 1 or 2 parts, found {dims[-1]}")
        dims[-1] = 1 if self.inverse and self.onesided else 2
        known_axis = numbers(None if self.axis is None else (self.axis,), axis)
        if known_axis is None:
            return (source.tensor.with_dims((*(fresh(f"{place}_") for place in range(len(dims) - 1)), dims[-1])),)
        place = self._place(known_axis[0], source.rank)
        size: DimLike | None
        if self.length is None and length is None:
            size = self._default_length(dims[place])
        else:
            size = _one(steering(None if self.length is None else (self.length,), length), "the length")
        if size is not None and self.onesided and not self.inverse:
            size = floordiv(size, 2) + 1
        dims[place] = fresh("length") if size is None else size
        return (source.tensor.with_dims(tuple(dims)),)

    @staticmethod
    def _place(axis: int, rank: int) -> int:
        place = normalize_axis(axis, rank)
        if place == rank - 1:
            raise ModelError("the last axis holds real and imaginary parts and can't be transformed")
        return place

    def _default_length(self, size: DimLike) -> DimLike:
        return 2 * (size - 1) if self.inverse and self.onesided else size

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, length, axis = (*values, None, None)[:3]
        dtype = dtype_of(x.dtype)
        place = self._place(_number(self.axis, axis, "the axis"), x.ndim)
        if self.length is None and length is None:
            size = int(self._default_length(x.shape[place]))
        else:
            size = _number(self.length, length, "the length")
        wide = x.astype(dtype.compute.numpy, copy=False)
        signal = wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + np.complex64(1j) * wide[..., 1]
        if self.inverse and self.onesided:
            return (convert(np.fft.irfft(signal, n=size, axis=place)[..., None], dtype),)
        if self.inverse:
            result = np.fft.ifft(signal, n=size, axis=place)
        elif self.onesided and x.shape[-1] == 1:
            result = np.fft.rfft(signal, n=size, axis=place)
        else:
            result = np.fft.fft(signal, n=size, axis=place)
            if self.onesided:
                result = np.take(result, np.arange(size // 2 + 1), axis=place)
        return (convert(np.stack([result.real, result.imag], axis=-1), dtype),)


@register
@dataclass(frozen=True, slots=True)
class Frames(Op):
    """`x [batch, n, parts]` as `[batch, frames, length, parts]`: frame i begins at i * step; only whole frames count.

    Operands: x, [length], [step], the latter two where the attribute is None.
    """

    name = "frames"
    length: DimLike | None = None
    step: DimLike | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, length, step = (*operands, None, None)[:3]
        source = present(x)
        if source.rank != 3:
            raise ModelError(f"expected rank 3, found {source.type}")
        size = _one(steering(None if self.length is None else (self.length,), length), "the frame length")
        hop = _one(steering(None if self.step is None else (self.step,), step), "the frame step")
        if isinstance(hop, int) and hop < 1:
            raise ModelError(f"the frame step is {hop}, expected 1 or more")
        batch, total, parts = source.shape
        if isinstance(size, int) and isinstance(total, int) and size > total:
            raise ModelError(f"a frame of {size} does not fit into a signal of {total}")
        count = fresh("frames") if size is None or hop is None else floordiv(total - size, hop) + 1
        return (source.tensor.with_dims((batch, count, fresh("length") if size is None else size, parts)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(present(operands[0]).dtype, tuple(fresh(f"{axis}_") for axis in range(4))),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, length, step = (*values, None, None)[:3]
        size, hop = _number(self.length, length, "the frame length"), _number(self.step, step, "the frame step")
        if size > x.shape[1] or hop < 1:
            raise ModelError(f"a frame of {size} every {hop} does not fit into a signal of {x.shape[1]}")
        view = np.lib.stride_tricks.sliding_window_view(x, size, axis=1)[:, ::hop]
        return (np.moveaxis(view, -1, 2),)


@register
@dataclass(frozen=True, slots=True)
class MelWeights(Op):
    """The matrix [length // 2 + 1, bins] that sums a spectrum into triangular bins, equally spaced in mel.

    Operands: number of bins, DFT length, sample rate, lower and upper edge in hertz; all scalars.
    mel = 2595 log10(1 + hertz / 700). Source: the ONNX operator MelWeightMatrix.
    """

    name = "mel_weights"
    dtype: DType

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        bins, length = (_one(steering(None, operand), "a scalar") for operand in operands[:2])
        rows = fresh("rows") if length is None else floordiv(length, 2) + 1
        return (TensorType(self.dtype, (rows, fresh("bins") if bins is None else bins)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        bins, length, rate = (_number(None, value, "a scalar") for value in values[:3])
        low, high = (_mel(np.float64(number(value, "an edge"))) for value in values[3:])
        edges = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
        hertz = 700 * np.expm1(edges / 2595 * np.log(10))
        places = ((length + 1) * hertz // rate).astype(np.int64)
        left, center, right = places[:-2], places[1:-1], places[2:]
        row = np.arange(length // 2 + 1)[:, None]
        rising = (row - left) / np.maximum(center - left, 1)
        falling = (right - row) / np.maximum(right - center, 1)
        result: Array = np.where((row >= left) & (row < center), rising, 0.0)
        result = np.where((row > center) & (row < right), falling, result)
        return (convert(np.where(row == center, 1.0, result), self.dtype),)


def _mel(hertz: Any) -> Any:
    return 2595 * np.log1p(hertz / 700) / np.log(10)

"""Encoded images. Decoding needs the package Pillow (the extra `images`) on the machine that runs it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import MissingExtraError, ModelError
from argosy.ir.dtype import UINT8, Array
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.operands import present

__all__ = ["PIXEL_FORMATS", "DecodeImage"]

PIXEL_FORMATS: Final = {"RGB": 3, "BGR": 3, "Grayscale": 1}
"""Pixel formats with their number of channels."""


@register
@dataclass(frozen=True, slots=True)
class DecodeImage(Op):
    """The pixels [height, width, channels] of an image file that lies in a vector of bytes. ONNX ImageDecoder.

    What can't be decoded gives an image of no pixels, as the standard demands. Operand: the bytes.
    """

    name = "decode_image"
    pixel_format: str

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        encoded = present(operands[0])
        if self.pixel_format not in PIXEL_FORMATS:
            raise ModelError(f"the pixel format is {self.pixel_format!r}, expected one of {', '.join(PIXEL_FORMATS)}")
        if encoded.dtype is not UINT8:
            raise ModelError(f"the bytes of an image are {encoded.dtype}, expected uint8")
        return (TensorType(UINT8, (fresh("height"), fresh("width"), PIXEL_FORMATS[self.pixel_format])),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return self.infer(*operands)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        try:
            from PIL import Image  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise MissingExtraError("pillow", "images", "decoding an image") from None
        gray = self.pixel_format == "Grayscale"
        try:
            with Image.open(io.BytesIO(np.asarray(values[0]).tobytes())) as image:
                pixels: Array = np.array(image.convert("L" if gray else "RGB"), np.uint8)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            return (np.zeros((0, 0, PIXEL_FORMATS[self.pixel_format]), np.uint8),)
        if gray:
            pixels = pixels[:, :, None]
        return (np.ascontiguousarray(pixels[:, :, ::-1]) if self.pixel_format == "BGR" else pixels,)

"""ImageDecoder: lossless formats give the pixels back; what is no image gives none."""

from __future__ import annotations

import io

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import program, run

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def encoded(kind: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF"])
def test_lossless_formats(kind: str) -> None:
    data = encoded(kind)
    np.testing.assert_array_equal(run("ImageDecoder", data), PIXELS)
    np.testing.assert_array_equal(run("ImageDecoder", data, pixel_format="BGR"), PIXELS[:, :, ::-1])
    gray = run("ImageDecoder", data, pixel_format="Grayscale")
    assert gray.shape == (5, 7, 1)
    np.testing.assert_allclose(gray[..., 0], PIXELS @ [0.299, 0.587, 0.114], atol=1)


def test_what_is_no_image_has_no_pixels() -> None:
    for data in (np.arange(64, dtype=np.uint8), np.zeros(0, np.uint8), encoded("PNG")[:60]):
        assert run("ImageDecoder", data).shape == (0, 0, 3)


def test_pixel_formats_are_checked() -> None:
    with pytest.raises(ModelError, match="'CMYK', expected one of RGB, BGR, Grayscale"):
        program("ImageDecoder", [np.zeros(4, np.uint8)], pixel_format="CMYK")
    with pytest.raises(ModelError, match="uint8"):
        program("ImageDecoder", [np.zeros(4, np.int8)])

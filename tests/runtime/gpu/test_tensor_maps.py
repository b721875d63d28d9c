"""What the driver is asked to encode for a tensor map, against the header of its interface."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from argosy.artifact.plan import TensorMapArgument
from argosy.errors import DeviceError
from argosy.runtime.gpu.tensor_maps import encoded_map
from tests.runtime.gpu.headers import numbers

_TILED = TensorMapArgument(0, 3, "float16", (768, 4096), (1536,), (64, 128), 128)
_WINDOWS = TensorMapArgument(
    0, 3, "bfloat16", (64, 56, 48, 2), (128, 7168, 344064), (64, 128, 1, 1), 128,
    steps=(1, 2, 1, 1), lower=(-1, -2), upper=(-2, 0),
)  # fmt: skip


class _Api:
    """Remembers a call, and writes ones into the map."""

    def __init__(self, *, has: bool = True) -> None:
        self._has = has
        self.name = ""
        self.arguments: list[Any] = []

    def has(self, name: str) -> bool:
        return self._has

    def call(self, name: str, *arguments: Any) -> None:
        self.name = name
        self.arguments = [list(each) if isinstance(each, ctypes.Array) else each for each in arguments]
        assert arguments[0] % 64 == 0
        ctypes.memset(arguments[0], 0xFF, 128)


def _made(argument: TensorMapArgument, driver: int = 13020) -> tuple[_Api, bytes]:
    api = _Api()
    dims, strides = [int(size) for size in argument.dims], [int(size) for size in argument.strides]
    return api, encoded_map(api, driver, argument, 1 << 20, dims, strides)  # type: ignore[arg-type]


def test_a_tile_of_a_matrix_is_asked_for_as_the_header_has_it() -> None:
    api, made = _made(_TILED)
    names = ["CU_TENSOR_MAP_DATA_TYPE_FLOAT16", "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B",
             "CU_TENSOR_MAP_L2_PROMOTION_L2_128B", "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"]  # fmt: skip
    kind, *tail = numbers("cuda", names)
    assert api.name == "tiled_map"
    assert api.arguments[1:] == [kind, 2, 1 << 20, [768, 4096], [1536, 0], [64, 128], [1, 1], *tail]
    assert made == b"\xff" * 128


def test_windows_of_images_are_asked_for_by_their_corners_and_steps() -> None:
    api, _ = _made(_WINDOWS)
    kind, *tail = numbers("cuda", ["CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", "CU_TENSOR_MAP_INTERLEAVE_NONE",
                                   "CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
                                   "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"])  # fmt: skip
    assert api.name == "window_map"
    assert api.arguments[1:] == [
        kind, 4, 1 << 20, [64, 56, 48, 2], [128, 7168, 344064, 0], [-1, -2, 0, 0], [-2, 0, 0, 0], 64, 128, [1, 2, 1, 1],
        *tail,
    ]  # fmt: skip


@pytest.mark.parametrize(("driver", "rows", "cleared"), [(13010, 64, True), (13010, 4096, False), (13020, 64, False)])
def test_a_bit_of_small_tensors_is_cleared_for_older_drivers(driver: int, rows: int, cleared: bool) -> None:
    _, made = _made(TensorMapArgument(0, 3, "float16", (768, rows), (1536,), (64, 64), 128), driver)
    second = int.from_bytes(made[8:16], "little")
    assert second == (1 << 64) - 1 - (cleared << 21)
    assert made[:8] + made[16:] == b"\xff" * 120


def test_a_driver_without_maps_is_told() -> None:
    with pytest.raises(DeviceError, match="no tensor maps"):
        encoded_map(_Api(has=False), 11080, _TILED, 1 << 20, [768, 4096], [1536])  # type: ignore[arg-type]

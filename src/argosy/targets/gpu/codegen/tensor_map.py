"""How the copy engine of a device (TMA) sees a tensor: what a kernel's source says of it, and what a launch passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec.structs import replace

from argosy.artifact.plan import Argument, ScalarArgument, TensorMapArgument
from argosy.ir.dtype import DType

__all__ = ["TensorMap", "completed_map", "map_arguments"]

_NAMES: Final = {"float16": "fp16", "bfloat16": "bf16"}
_SWIZZLES: Final[Mapping[int, Literal[0, 32, 64, 128]]] = {0: 0, 1: 32, 2: 64, 3: 128}
_MAP: Final = 128
"""Bytes of a map; it begins at a multiple of half of them."""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A dense tensor with axes of these `sizes`, outermost first, behind the pointer number `pointer` of a kernel.

    Copies are of `box`: as many elements along each axis; or, with `steps`, so many windows and channels of an image
    whose channels lie last. Windows begin `steps` apart, in the inner axes from `lower` on to `upper` behind the last
    place of the image.
    """

    pointer: int
    dtype: DType
    sizes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        """The type of the parameter in Triton. Tiles lie in shared memory as matrix instructions take them."""
        width = self.dtype.bits // 8
        row = self.box[-1] * width
        swizzle = next(bytes_ for bytes_ in (128, 64, 32, 0) if not bytes_ or row % bytes_ == 0)
        layout = (
            f"NVMMASharedLayout(swizzle_byte_width={swizzle}, element_bitwidth={width * 8}, rank={len(self.box)}, "
            "transposed=False, fp4_padded=False, cga_layout=[])"
        )
        box = f"{_NAMES[self.dtype.name]}[{','.join(map(str, self.box))}]"
        return (
            f"tensordesc_im2col<{box},input_rank={len(self.sizes)},{layout}>"
            if self.steps
            else f"tensordesc<{box},{layout}>"
        )


def map_arguments(maps: Sequence[TensorMap], buffers: Sequence[int]) -> tuple[tuple[Argument, ...], int]:
    """The first parameters of a kernel: each map, then the sizes (int32) and strides (int64) of its tensor; their end.

    `buffers` are those of the kernel's pointers. What boxes are cut into, the code says when it is compiled.
    """
    found: list[Argument] = []
    end = 0
    for each in maps:
        strides = [1]
        for size in reversed(each.sizes[1:]):
            strides.insert(0, strides[0] * size)
        start = -(-end // (_MAP // 2)) * (_MAP // 2)
        width = each.dtype.bits // 8
        found.append(
            TensorMapArgument(
                start, buffers[each.pointer], each.dtype.name, each.sizes[::-1],
                tuple(width * stride for stride in strides[-2::-1]), _boxed(each), 0,
                steps=each.steps[::-1], lower=each.lower[::-1], upper=each.upper[::-1],
            )
        )  # fmt: skip
        end = start + _MAP
        found += [ScalarArgument(end + 4 * place, "int32", size) for place, size in enumerate(each.sizes)]
        end = -(-(end + 4 * len(each.sizes)) // 8) * 8
        found += [ScalarArgument(end + 8 * place, "int64", stride) for place, stride in enumerate(strides)]
        end += 8 * len(strides)
    return tuple(found), end


def _boxed(each: TensorMap) -> tuple[int, ...]:
    """The box with as many numbers as the tensor has axes, innermost first."""
    return (*each.box[::-1], *(1,) * (len(each.sizes) - len(each.box)))


def completed_map(argument: TensorMapArgument, about: Mapping[str, Any]) -> TensorMapArgument:
    """A map with what the compiled code says of it: the boxes that copies are cut into, and how they are swizzled."""
    box = tuple(about["block_size"])[::-1]
    return replace(argument, box=(*box, *(1,) * (len(argument.dims) - len(box))), swizzle=_SWIZZLES[about["swizzle"]])

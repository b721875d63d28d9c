"""The arguments of code in a plan's call and launch steps: what lies where in a parameter block."""

from __future__ import annotations

from typing import Literal, TypeAlias

from argosy.artifact.record import Record

__all__ = [
    "Argument",
    "HiddenArgument",
    "PointerArgument",
    "ScalarArgument",
    "ScratchArgument",
    "Size",
    "TensorMapArgument",
]

Size: TypeAlias = int | str
"""A number, or a dim expression over the plan's symbols."""


class PointerArgument(Record, frozen=True, tag_field="kind", tag="pointer"):
    """The address of a buffer plus `shift` bytes, 8 bytes at `offset` of the parameter block."""

    offset: int
    buffer: int
    shift: Size = 0


class ScalarArgument(Record, frozen=True, tag_field="kind", tag="scalar"):
    """A size, converted to `dtype`, at `offset`."""

    offset: int
    dtype: str
    value: Size


class HiddenArgument(Record, frozen=True, tag_field="kind", tag="hidden"):
    """An argument that the code object's metadata asks for by name (`hidden_block_count_x` …), at `offset`.

    `fault` is the address of 64 bits of this step's own, 0 when a run begins: a kernel that can't go on puts there the
    maximum of them and of what it met, a code in bits 56 to 59 and below it a number with its sign; see
    `runtime.gpu.faults`.
    """

    offset: int
    size: int
    name: str


class ScratchArgument(Record, frozen=True, tag_field="kind", tag="scratch"):
    """The address of `bytes` bytes of scratch memory that live as long as the step, at `offset`."""

    offset: int
    bytes: Size
    zeroed: bool = False


class TensorMapArgument(Record, frozen=True, tag_field="kind", tag="tensor_map"):
    """A TMA descriptor, 128 bytes at `offset`, encoded when addresses and sizes are known.

    `dims` and `box` are in elements, innermost first; `strides` in bytes, without the innermost.

    One with `steps` is for windows that slide over an image, channels innermost (CUDA driver API,
    `cuTensorMapEncodeIm2col`): `steps` are between elements of each dim, `lower` and `upper` where first and last
    window begin beside the image's own first and last place, in the dims between channels and images; of the box the
    first two numbers count, channels and windows.
    """

    offset: int
    buffer: int
    dtype: str
    dims: tuple[Size, ...]
    strides: tuple[Size, ...]
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    fill_nan: bool = False
    steps: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()


Argument: TypeAlias = PointerArgument | ScalarArgument | HiddenArgument | ScratchArgument | TensorMapArgument

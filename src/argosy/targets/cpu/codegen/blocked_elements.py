"""Sixteen channels of a pixel at a time, where images lie blocked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import Dim, DimLike, equal, symbols_in
from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module, Value
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.reorder import image_shape, place
from argosy.targets.cpu.codegen.vector_elements import KINDS, VectorElements, lanes_type, load_block, stored_lanes
from argosy.targets.cpu.layout import Blocked
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["BlockedElements", "Image", "images_of", "store_pixel"]

CHANNEL = "@1"


@dataclass(frozen=True, slots=True)
class Image:
    """How a blocked operand is read: axis i of the image is axis `axes[i]` of the value, or of size 1 for None."""

    axes: tuple[int | None, ...]
    layout: Blocked


class BlockedElements(VectorElements):
    """Elements of channels `16 * block` and following, `block` being a C variable, at the places `i0`, `i2`, …"""

    def __init__(self, text: CText, pointers: dict[Instruction, str], images: Mapping[str, Image]) -> None:
        super().__init__(text, pointers, 1)
        self.images = images

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        image = self.images.get(pointer)
        if image is None:
            if any(_mentions_channel(index) for index in access.indices):
                raise DeclinedError("an operand with channels that is not blocked")
            return super().load(dtype, pointer, access)
        shape = image_shape(access.source, image.axes)
        batch, channel, *places = (0 if axis is None else access.indices[axis] for axis in image.axes)
        if channel != axis_index(1, access.extents[1]):
            raise DeclinedError("channels that are not those of the result")
        at = image.layout.offset(shape, batch, place("block"), places)
        self.reads.setdefault(pointer, set()).add(at)
        return self.text.let(lanes_type(dtype), load_block(dtype, f"{pointer} + {self.text.dim(at)}"))


class _Recorder(BlockedElements):
    """Notes how parameters are read."""

    def __init__(self, text: CText, pointers: dict[Instruction, str]) -> None:
        super().__init__(text, pointers, {})
        self.loads: list[tuple[str, Access]] = []

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        if dtype not in KINDS:
            raise DeclinedError(f"vectors of {dtype}")
        self.loads.append((pointer, access))
        return "x"


def images_of(module: Module, given: Value | None) -> dict[int, tuple[int | None, ...]]:
    """The parameters that must be blocked for the result of `module` to be computed so: their number, and their axes.

    Raises DeclinedError where that is not possible. `given` is a value that the kernel has already.
    """
    root = module.results[0]
    writer = KernelWriter(module, [root.dtype])
    recorder = _Recorder(writer.text, writer.pointers)
    if root.dtype not in KINDS:
        raise DeclinedError(f"images of {root.dtype} are not blocked")
    if given is not None:
        if given.dtype not in KINDS:
            raise DeclinedError(f"images of {given.dtype} are not blocked")
        recorder.given[given] = "x"
    recorder.of(root, maps.identity(root.shape))
    found: dict[int, tuple[int | None, ...]] = {}
    for pointer, access in recorder.loads:
        if not any(_mentions_channel(index) for index in access.indices):
            continue
        axes = _image_axes(access)
        number = list(writer.pointers.values()).index(pointer)
        if found.setdefault(number, axes) != axes:
            raise DeclinedError("an operand is read in two ways")
    return found


def _image_axes(access: Access) -> tuple[int | None, ...]:
    """Which axis of an operand each axis of the result walks along."""
    whole = maps.identity(access.extents).indices
    if len(access.indices) == len(whole) and all(
        index in (mine, 0) for index, mine in zip(access.indices, whole, strict=True)
    ):
        return tuple(range(len(whole)))
    if any(isinstance(index, Dim) and index not in whole for index in access.indices):
        raise DeclinedError("an operand is read in another order than the result is made")
    axes = tuple(
        next((axis for axis, index in enumerate(access.indices) if isinstance(index, Dim) and index == mine), None)
        for mine in whole
    )
    if any(axis not in axes and not equal(size, 1) for axis, size in enumerate(access.source)):
        raise DeclinedError("an operand is read at one place of an axis")
    return axes


def store_pixel(
    writer: KernelWriter, images: Mapping[str, Image], layout: Blocked, given: tuple[Value, str] | None = None
) -> None:
    """Store 16 channels of the result at the places that are variables; `given` is a value and its C expression."""
    root = writer.module.results[0]
    elements = BlockedElements(writer.text, writer.pointers, images)
    elements.reads = writer.elements.reads
    if given is not None:
        kind = lanes_type(given[0].dtype)
        elements.given[given[0]] = writer.text.let(kind, f"({kind})({given[1]})")
    access = maps.identity(root.shape)
    value = elements.of(root, access)
    batch, _, *places = access.indices
    at = layout.offset(root.shape, batch, place("block"), places)
    stored, target = scalar.storage_type(root.dtype), f"{writer.result()} + {writer.text.dim(at)}"
    writer.text.line(f"*({stored}x16 *)({target}) = {stored_lanes(root.dtype, value)};")
    writer.stored = at


def _mentions_channel(index: DimLike) -> bool:
    return isinstance(index, Dim) and any(symbol.name == CHANNEL for symbol in symbols_in(index))

"""Resize: each element of the result is the nearest one of the operand, or a sum over its neighbours on every axis.

Places are computed in float64, as the definition does: a place that rounds otherwise is another pixel. How far they are
from that pixel, and so the weights, are of the type that the sums are in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir import dim as dims
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.resize import Resize
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.reduction import Order
from argosy.targets.gpu.codegen.resize_axes import ResizedAxis, float_of, place_text, resized_axes
from argosy.targets.lowering.accesses import op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["resize_kernel"]

_BLOCK: Final = 256
_NEAREST: Final = {
    "round_prefer_floor": "libdevice.ceil({place} - 0.5)",
    "round_prefer_ceil": "libdevice.floor({place} + 0.5)",
    "floor": "libdevice.floor({place})",
    "ceil": "libdevice.ceil({place})",
    "floor_up_ceil_down": "tl.where({scale} < 1.0, libdevice.ceil({place}), libdevice.floor({place}))",
}


def resize_kernel(module: Module, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a module of one resize; `order` is how the result lies in memory."""
    return _Resizing(module, orders, order).kernel()


class _Resizing:
    def __init__(self, module: Module, orders: Sequence[Order], order: Order) -> None:
        (self._instruction,) = module.instructions
        self._op = op_of(self._instruction, Resize)
        self._result = module.results[0]
        self._order = order
        self._writer = KernelWriter(module, orders, (order,))
        self._text = self._writer.text
        self._crop = self._op.coordinates == "tf_crop_and_resize"
        self._outside: dict[int, str] = {}
        self._from: dict[int, DimLike] = {}

    def kernel(self) -> Kernel:
        text, writer, elements = self._text, self._writer, self._writer.elements
        result, x = self._result, present(self._instruction, 0)
        axes = [axis for axis in resized_axes(elements, self._instruction) if not axis.still]
        count = product(result.shape)
        writer.lanes = ("i",)
        text.root("i", f"{writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
        text.line(f"inside = i < {text.dim(count)}")
        elements.masks.append(("inside", text.roots["i"]))
        decompose(writer, "i", result.shape, self._order)
        for axis in axes:
            if not (isinstance(axis.size, int) and axis.size > 0):
                elements.fault(
                    f"({text.dim(axis.size)} == 0) & ({float_of(elements, axis.output)} != 0)", Fault.SIZE, "0"
                )
        place = maps.identity(result.shape)
        if self._op.mode == "nearest":
            value = self._nearest(axes, x.dtype)
        else:
            wide = result.dtype.compute if result.dtype.is_float else FLOAT64
            value = self._rounded(self._sum(axes, wide), wide)
        writer.store(value, result.dtype, place)
        return writer.kernel(Launch((ceildiv(count, _BLOCK), 1, 1), 4)).labelled(f"resize_{self._op.mode}")

    def _index(self, axis: int) -> DimLike:
        return maps.identity(self._result.shape).indices[axis]

    def _source(self) -> Access:
        """How the operand is read at the places that are chosen for now."""
        x = present(self._instruction, 0)
        indices = [self._from.get(axis, self._index(axis)) for axis in range(x.rank)]
        return Access(self._result.shape, x.shape, tuple(indices))

    def _choose(self, axis: ResizedAxis, expression: str) -> None:
        """Read an axis at a place, which is clamped to it."""
        text = self._text
        name = text.fresh("from_")
        limit = text.dim(axis.size)
        inside = f"tl.minimum(tl.maximum({expression}, 0), {limit} - 1)"
        text.derive(name, f"{inside}.to({text.index_type})", axis_name(axis.axis))
        self._from[axis.axis] = symbol_dim(Symbol(f"@{name}", 0))

    def _place(self, axis: ResizedAxis) -> str:
        """The place that an element comes from, and whether it is outside of what is cropped."""
        elements = self._writer.elements
        place = self._text.let(place_text(elements, self._op.coordinates, axis, self._index(axis.axis)))
        if self._crop:
            last = f"{float_of(elements, axis.size)} - 1.0"
            self._outside[axis.axis] = self._text.let(f"({place} < 0.0) | ({place} > {last})")
        return place

    def _unmoved(self, axis: ResizedAxis) -> str:
        """Whether an axis is left alone: it keeps its size, whatever the rule. Nothing that is cropped is."""
        elements = self._writer.elements
        size, output = float_of(elements, axis.size), float_of(elements, axis.output)
        return self._text.let(f"({size} == {output}) & ({axis.scale} == 1.0)")

    def _nearest(self, axes: Sequence[ResizedAxis], dtype: DType) -> str:
        text, elements = self._text, self._writer.elements
        for axis in axes:
            place = self._place(axis)
            rounded = _NEAREST[self._op.nearest].format(place=place, scale=axis.scale)
            chosen = text.let(f"({rounded}).to(tl.int64)")
            if not self._crop:
                own = float_of(elements, self._index(axis.axis))
                chosen = f"tl.where({self._unmoved(axis)}, ({own}).to(tl.int64), {chosen})"
            self._choose(axis, chosen)
        value = elements.of(present(self._instruction, 0), self._source())
        if not self._outside:
            return value
        fill = scalar.apply("convert", [scalar.constant(self._op.extrapolation, FLOAT64)], [FLOAT64], dtype)
        return text.let(f"tl.where({' | '.join(self._outside.values())}, {fill}, {value})")

    def _sum(self, axes: Sequence[ResizedAxis], wide: DType) -> str:
        """The sum over the neighbours along `axes`: of the sums over those along all but the last."""
        text, elements = self._text, self._writer.elements
        x = present(self._instruction, 0)
        if not axes:
            kind = scalar.compute_type(wide)
            return text.let(f"{elements.of(x, self._source())}.to({kind})")
        *rest, axis = axes
        place = self._place(axis)
        base = text.let(f"libdevice.ceil({place}) - 1.0")
        kind = scalar.compute_type(wide)
        fraction, whole = text.let(f"({place} - {base}).to({kind})"), text.let(f"{base}.to(tl.int64)")
        unmoved = None if self._crop or self._moves(axis) else self._unmoved(axis)
        stretch, taps = self._taps(axis, unmoved)
        stretch = text.let(f"{stretch}.to({kind})")
        size = text.dim(axis.size)
        total = ""
        if self._op.exclude_outside or self._op.antialias:
            total = text.fresh("total")
            text.line(f"{total} = tl.zeros([{_BLOCK}], {kind})")
            with text.block(f"for tap in {taps}:"):
                text.line(f"{total} = {total} + {self._weight('tap', fraction, whole, stretch, size, wide)}")
            text.line(f"{total} = tl.where({total} == 0.0, 1.0, {total})")
        sum_, tap = text.fresh("sum"), text.fresh("tap")
        text.line(f"{sum_} = tl.zeros([{_BLOCK}], {kind})")
        with text.block(f"for {tap} in {taps}:"), self._inside():
            weight = self._weight(tap, fraction, whole, stretch, size, wide)
            weight = scalar.apply("div", [f"({weight})", total], [wide, wide], wide) if total else weight
            source = f"{whole} + {tap}"
            if unmoved is not None:
                weight = f"tl.where({unmoved}, 1.0, {weight})"
                own = float_of(elements, self._index(axis.axis))
                source = f"tl.where({unmoved}, ({own}).to(tl.int64), {source})"
            factor = text.let(f"({weight}).to({kind})")
            self._choose(axis, source)
            text.line(f"{sum_} = {sum_} + {self._sum(rest, wide)} * {factor}")
        if axis.axis in self._outside:
            fill = scalar.constant(self._op.extrapolation, wide)
            return text.let(f"tl.where({self._outside.pop(axis.axis)}, {fill}, {sum_})")
        return sum_

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """What is computed, and chosen, inside is not known outside."""
        before = dict(self._from)
        with self._writer.elements.scope():
            yield
        self._from = before

    def _moves(self, axis: ResizedAxis) -> bool:
        """Whether it is known that an axis is not left alone."""
        literal = axis.scale.startswith("tl.full") and axis.scale != scalar.constant(1.0, FLOAT64)
        return literal or dims.equal(axis.size, axis.output) is False

    def _taps(self, axis: ResizedAxis, unmoved: str | None) -> tuple[str, str]:
        """How much narrower than 1 a step between neighbours is, and the neighbours: 2, 4, or as many as that asks for.

        They are counted from the one before the place. An axis that is left alone has one.
        """
        text = self._text
        reach = 1 if self._op.mode == "linear" else 2
        stretch = scalar.constant(1.0, FLOAT64)
        first, last = str(1 - reach), str(1 + reach)
        if self._op.antialias:
            stretch = text.let(f"tl.minimum({axis.scale}, 1.0)")
            first = text.let(f"libdevice.floor({-reach}.0 / {stretch}).to(tl.int32) + 1")
            last = text.let(f"2 - {first}")
        elif unmoved is None:
            return stretch, f"tl.static_range({first}, {last})"
        if unmoved is not None:
            first, last = text.let(f"tl.where({unmoved}, 0, {first})"), text.let(f"tl.where({unmoved}, 1, {last})")
        return stretch, f"range({first}, {last})"

    def _weight(self, tap: str, fraction: str, whole: str, stretch: str, size: str, wide: DType) -> str:
        """The weight of a neighbour, in the type that sums are in."""
        distance = f"tl.abs(({tap} - {fraction}) * {stretch})"
        if self._op.mode == "linear":
            weight = f"tl.maximum(1.0 - {distance}, 0.0)"
        else:
            weight = f"cubic_weight({distance}, {scalar.constant(self._op.cubic_a, wide)})"
        if self._op.exclude_outside:
            weight = f"tl.where(({whole} + {tap} < 0) | ({whole} + {tap} >= {size}), 0.0, {weight})"
        return weight

    def _rounded(self, value: str, wide: DType) -> str:
        """The sum as an element of the result: integers are rounded and clipped."""
        dtype = self._result.dtype
        if dtype.is_float:
            return value
        bits = dtype.bits - (dtype.kind == "int")
        low = -(1 << bits) if dtype.kind == "int" else 0
        near = self._text.let(f"libdevice.rint({value})")
        least, most = scalar.constant(low, dtype), scalar.constant((1 << bits) - 1, dtype)
        inside = scalar.apply("convert", [near], [wide], dtype)
        return self._text.let(
            f"tl.where({near} >= {float(1 << bits)}, {most}, tl.where({near} < {float(low)}, {least}, {inside}))"
        )

"""What kernels of Fourier transforms read: the signal, through what is fused with it, and numbers between stages."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.access import Access
from argosy.ir.dim import Dim, DimLike, Symbol, symbol_dim
from argosy.ir.dtype import DType
from argosy.ir.module import Parameter
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.butterflies import Complex
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import DeclinedError, op_of

__all__ = ["Signal", "is_folded", "store_result"]


def is_folded(op: Fourier, parts: DimLike) -> bool:
    """Whether half of the numbers tell all: transforms of real signals mirror themselves."""
    return parts == 1 and not (op.inverse and op.onesided)


@dataclass(frozen=True, slots=True)
class Signal:
    """The operand of a transform of `length`, whose axis may be known.

    The kernel's variables `outer` and `within` say what is before and behind the axis, `size` and `inner` how long the
    axis and what is behind it are.
    """

    kernel: OpKernel
    axis: int | None
    length: str

    def read(self, place: str) -> Complex:
        """The number at a place along the axis; 0 behind the end."""
        text, op, x = self.kernel.text, op_of(self.kernel.instruction, Fourier), self.kernel.operand(0)
        parts = x.shape[-1]
        if not isinstance(parts, int):
            raise DeclinedError("it is not known whether the signal is real")
        half = op.inverse and op.onesided
        source = text.derive(text.fresh("source"), place, "i")
        if half:
            mirrored = f"tl.where(2 * {source} <= {self.length}, {source}, {self.length} - {source})"
            from_ = text.derive(text.fresh("from"), mirrored, "i")
        else:
            from_ = source
        there = text.derive(text.fresh("there"), f"inside & ({from_} < size)", "i")
        if parts == 1:
            return self._part(from_, 0, there), ""
        real, imaginary = self._parts(from_, there)
        if half:
            # The half that is left out is the mirror image; the ends count as real.
            ends = f"({source} == 0) | (2 * {source} == {self.length})"
            imaginary = text.let(f"tl.where({ends}, 0.0, tl.where({from_} == {source}, {imaginary}, -{imaginary}))")
        return real, imaginary

    def _parts(self, place: str, there: str) -> tuple[str, str]:
        kernel, x = self.kernel, self.kernel.operand(0)
        if not isinstance(x.instruction.op, Parameter):
            return self._part(place, 0, there), self._part(place, 1, there)
        at = f"((outer * size + {place}) * inner + within) * 2"
        pointer = kernel.elements.pointers[x.instruction]
        real, imaginary = kernel.load_neighbours(pointer, x.dtype, at, 2, there)
        return real, imaginary

    def _part(self, place: str, part: int, there: str) -> str:
        kernel, x = self.kernel, self.kernel.operand(0)
        text, elements = kernel.text, kernel.elements
        if isinstance(x.instruction.op, Parameter):
            return kernel.load(0, f"((outer * size + {place}) * inner + within) * {x.shape[-1]} + {part}", there)
        if self.axis is None:
            raise DeclinedError("the axis is known only when the program runs")
        before, behind = x.shape[: self.axis], x.shape[self.axis + 1 : -1]
        indices = (
            *_coordinates(kernel, "outer", before),
            symbol_dim(Symbol(f"@{place}", 0)),
            *_coordinates(kernel, "within", behind),
            part,
        )
        with elements.only(there, text.roots[there]):
            value = elements.of(x, Access(x.shape, x.shape, indices))
        return text.let(f"tl.where({there}, {value}, 0.0)")


def store_result(
    kernel: OpKernel, place: str, value: Complex, *, count: str, length: str, kind: DType, mask: str = "inside"
) -> None:  # fmt: skip
    """Store a number of the result, of `kind`, of which there are `count` along the axis.

    An inverse is divided by the `length`, a number of that kind.
    """
    text, op, wide = kernel.text, op_of(kernel.instruction, Fourier), kernel.operand(0).dtype.compute
    real = op.inverse and op.onesided
    made = []
    for each in value[:1] if real else value:
        scaled = each or text.let(f"(i * 0).to({scalar.tl_type(kind)})")
        if op.inverse and each:
            scaled = text.let(scalar.apply("div", [scaled, length], [kind, kind], kind))
        made.append(scaled if kind is wide else text.let(scalar.apply("convert", [scaled], [kind], wide)))
    at = text.let(f"(outer * {count} + {place}) * inner + within")
    if real:
        kernel.put(at, made[0], mask=mask)
    else:
        kernel.put_pair(f"2 * {at}", (made[0], made[1]), mask=mask)


def _coordinates(kernel: OpKernel, flat: str, dims: tuple[DimLike, ...]) -> list[DimLike]:
    """The coordinates of a place among some axes, of which those of size 1 take no arithmetic."""
    live = [axis for axis, size in enumerate(dims) if size != 1]
    names = kernel.counters(flat, [dims[axis] for axis in live], kernel.text.fresh("at"))
    found: list[DimLike] = [0] * len(dims)
    for axis, name in zip(live, names, strict=True):
        size = dims[axis]
        found[axis] = symbol_dim(Symbol(f"@{name}", 0, None if isinstance(size, Dim) else max(size - 1, 0)))
    return found

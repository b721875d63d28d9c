"""The kernel of an Einstein sum: a lane for each element, loops over the axes that the result lacks."""

from __future__ import annotations

import contextlib

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, dim_min, equal, symbol_dim
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module, Value
from argosy.ops.einsum import Einsum, parse_equation
from argosy.ops.shapes import broadcast, broadcast_dim, product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["einsum_kernel"]

_ELLIPSIS = "..."


def einsum_kernel(module: Module) -> Kernel:
    """The kernel of an `einsum`; floats are multiplied and summed in float64."""
    result = module.results[0]
    kernel = OpKernel(module)
    text, elements = kernel.text, kernel.elements
    equation = parse_equation(op_of(kernel.instruction, Einsum).equation)
    operands = [kernel.operand(index) for index in range(len(equation.operands))]
    terms, batch = _labelled(equation.operands, operands)
    sizes: dict[str, DimLike] = {}
    for labels, operand in zip(terms, operands, strict=True):
        for label, size in zip(labels, operand.shape, strict=True):
            sizes[label] = broadcast_dim(sizes[label], size) if label in sizes else size
    axes = [name for label in equation.result for name in (batch if label == _ELLIPSIS else [label])]
    places: dict[str, DimLike] = dict(zip(axes, maps.identity(result.shape).indices, strict=True))
    wide = FLOAT64 if result.dtype.is_float else result.dtype.compute
    kind = scalar.compute_type(wide)
    kernel.items(product(result.shape))
    decompose(kernel, "i", result.shape)
    kernel.zeros("total", kind)
    with contextlib.ExitStack() as stack:
        for label in (label for label in sizes if label not in places):
            name = text.fresh("r")
            size = sizes[label]
            stack.enter_context(text.block(f"for {name} in range(0, {text.dim(size)}):"))
            places[label] = 0 if size == 1 else symbol_dim(Symbol(f"@{name}", 0))
        stack.enter_context(elements.scope())
        factors = [
            elements.of(operand, _place(result, operand, [(label, sizes[label]) for label in labels], places))
            for labels, operand in zip(terms, operands, strict=True)
        ]
        value = f"{factors[0]}.to({kind})"
        for factor in factors[1:]:
            value = scalar.apply("mul", [value, f"{factor}.to({kind})"], [wide, wide], wide)
        text.line(f"total = {scalar.apply('add', ['total', value], [wide, wide], wide)}")
    rounded = scalar.apply("convert", ["total"], [wide], result.dtype.compute) if wide.is_float else "total"
    kernel.put("i", rounded)
    return kernel.finished()


def _labelled(terms: tuple[tuple[str, ...], ...], operands: list[Value]) -> tuple[list[list[str]], list[str]]:
    """The label of every axis of every operand; those of the axes that "..." stands for, counted from the last."""
    found: list[list[str]] = []
    batch: tuple[DimLike, ...] = ()
    for labels, operand in zip(terms, operands, strict=True):
        spare = operand.rank - sum(label != _ELLIPSIS for label in labels)
        named: list[str] = []
        for label in labels:
            if label == _ELLIPSIS:
                batch = broadcast(batch, operand.shape[len(named) : len(named) + spare])
                named += [f"{_ELLIPSIS}{place}" for place in range(spare, 0, -1)]
            else:
                named.append(label)
        found.append(named)
    return found, [f"{_ELLIPSIS}{place}" for place in range(len(batch), 0, -1)]


def _place(result: Value, operand: Value, labels: list[tuple[str, DimLike]], places: dict[str, DimLike]) -> Access:
    """Where an operand is read: an axis of size 1 repeats."""
    indices: list[DimLike] = []
    for (label, whole), size in zip(labels, operand.shape, strict=True):
        if size == 1:
            indices.append(0)
        else:
            indices.append(places[label] if equal(size, whole) else dim_min(places[label], size - 1))
    return Access(result.shape, operand.shape, tuple(indices))

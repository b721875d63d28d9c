"""Einstein sums as loops over the axes that the result lacks, and determinants by elimination."""

from __future__ import annotations

import contextlib
from typing import Any

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, dim_min, equal, symbol_dim
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module, Value
from argosy.ir.types import TensorType
from argosy.ops.einsum import Einsum, parse_equation
from argosy.ops.shapes import broadcast, broadcast_dim, product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.loops import chunked_loops
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["DeterminantElimination", "EinsumLoops"]

_ELLIPSIS = "..."


@register_solution
class EinsumLoops(LoneOp):
    """One sum of products for each element of the result."""

    name = "einsum loops"
    anchors = frozenset({"einsum"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _einsum(problem.module))


def _einsum(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype])
    equation = parse_equation(op_of(kernel.instruction, Einsum).equation)
    operands = [kernel.operand(index) for index in range(len(equation.operands))]
    terms, batch = _labelled(equation.operands, operands)
    sizes: dict[str, DimLike] = {}
    for labels, operand in zip(terms, operands, strict=True):
        for label, size in zip(labels, operand.shape, strict=True):
            sizes[label] = broadcast_dim(sizes[label], size) if label in sizes else size
    axes = [name for label in equation.result for name in (batch if label == _ELLIPSIS else [label])]
    places: dict[str, DimLike] = dict(zip(axes, maps.identity(result.shape).indices, strict=True))
    summed = [label for label in sizes if label not in places]
    wide = FLOAT64 if result.dtype.is_float else result.dtype.compute
    text, kind = kernel.text, scalar.compute_type(wide)

    def body() -> None:
        text.line(f"{kind} total = {scalar.constant(0, wide)};")
        with contextlib.ExitStack() as stack:
            for label in summed:
                name = text.fresh("r")
                size = sizes[label]
                stack.enter_context(text.loop(name, "0", text.dim(size)))
                places[label] = 0 if size == 1 else symbol_dim(Symbol(f"@{name}"))
            stack.enter_context(kernel.elements.scope())
            factors = [
                kernel.elements.of(
                    operand, _place(result, operand, [(label, sizes[label]) for label in labels], places)
                )
                for labels, operand in zip(terms, operands, strict=True)
            ]
            value = f"({kind}){factors[0]}" if wide.kind != "complex" else factors[0]
            for factor in factors[1:]:
                other = f"({kind}){factor}" if wide.kind != "complex" else factor
                value = scalar.apply("mul", [value, other], [wide, wide], wide)
            with text.block(""):
                if wide.is_float:
                    text.line("#pragma clang fp reassociate(on)")
                text.line(f"total = {scalar.apply('add', ['total', value], [wide, wide], wide)};")
        whole = maps.identity(result.shape)
        rounded = scalar.apply("convert", ["total"], [wide], result.dtype.compute) if wide.is_float else "total"
        text.line(kernel.store(0, result.dtype, kernel.elements.offset(whole), rounded))

    with kernel.elements.scope():
        pieces = chunked_loops(text, result.shape, body)
    work = product(result.shape) * product(tuple(sizes[label] for label in summed))
    return kernel.kernel(chunk_count(work, pieces))


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


@register_solution
class DeterminantElimination(LoneOp):
    """Gaussian elimination with row pivots, in float64."""

    name = "determinant elimination"
    anchors = frozenset({"determinant"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        x = problem.module.parameters[0].result()
        buffer = steps.temporary(TensorType(FLOAT64, x.shape))
        self.call(problem, steps, _determinant(problem.module), writes=[steps.result(), buffer])


def _determinant(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype, FLOAT64])
    x = kernel.operand(0)
    text = kernel.text
    size = text.let("int64", kernel.dim(0, x.rank - 1))
    with kernel.share("number", kernel.count(x.shape[:-2])):
        text.line(f"float64 *m = y1 + number * {size} * {size}, result = 1;")
        with text.loop("i", "0", f"{size} * {size}"):
            text.line(f"m[i] = (float64){kernel.load(0, f'number * {size} * {size} + i')};")
        kernel.code(
            f"""
for (int64 k = 0; k < {size}; ++k) {{
  int64 pivot = k;
  for (int64 i = k + 1; i < {size}; ++i)
    if (abs_float64(m[i * {size} + k]) > abs_float64(m[pivot * {size} + k])) pivot = i;
  const float64 head = m[pivot * {size} + k];
  result *= pivot == k ? head : -head;
  if (head == 0) break;
  for (int64 j = k; j < {size}; ++j) {{
    const float64 moved = m[pivot * {size} + j];
    m[pivot * {size} + j] = m[k * {size} + j];
    m[k * {size} + j] = moved;
  }}
  for (int64 i = k + 1; i < {size}; ++i) {{
    const float64 factor = m[i * {size} + k] / head;
    for (int64 j = k + 1; j < {size}; ++j) m[i * {size} + j] -= factor * m[k * {size} + j];
  }}
}}"""
        )
        rounded = scalar.apply("convert", ["result"], [FLOAT64], result.dtype.compute)
        text.line(kernel.store(0, result.dtype, "number", rounded))
    return kernel.kernel(chunk_count(product(x.shape) * 16, product(x.shape[:-2])))

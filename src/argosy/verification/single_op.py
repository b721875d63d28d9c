"""How far one instruction may be from the truth when its inputs are true: rounding alone, and nothing more.

End to end a share of the largest magnitude has to do, as errors grow from layer to layer. A single instruction can be
held to what rounding explains. With u the unit roundoff of the type that computes, n the terms of a sum:

    |error| <= (2 u min(n, 8 sqrt(n)) + 2 u_operands) * S + 2 u_result |expected|

- n u is the bound of a sum or inner product of n terms in any order (N. J. Higham, Accuracy and Stability of Numerical
  Algorithms, 2nd ed., Lemma 3.1, (3.5) and (4.4)). With many terms it is never reached: errors grow with the root of
  n (section 2.8; Higham and Mary, SIAM J. Sci. Comput. 41 (2019), where a factor of 8 is as good as certain). The 2 is
  for products that are rounded, for matrix units that cut off, and for an expected value in the same type.
- u_operands is the roundoff of what the factors of a product are rounded to: tf32, fp16 or bf16 code.
- S is what errors are relative to. Where the operands are given, it is what the same sum is of magnitudes, an element
  of its own for each result: |A| |B| for a product (section 3.5), so that nothing is lost to cancellation. Without
  operands, and for other ops, it is the largest expected magnitude.

A pointwise formula with operands is followed step by step (running error analysis, section 3.3): each step adds what
its function may be off by, and passes on what its arguments are off by, found by evaluating it there. So a comparison
or a cast that the error can tip over may be tipped over, and one that it can't may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import ml_dtypes
import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dtype import FLOAT64, Array, DType, dtype_of
from argosy.ir.formula import Constant, Formula
from argosy.ir.interpreter import evaluate
from argosy.ir.module import Instruction, Value
from argosy.ir.op import Env
from argosy.ir.types import TensorType
from argosy.ops.numpy_scalar import NUMPY, convert
from argosy.ops.pointwise import Pointwise

__all__ = ["Rounding", "terms_of", "tolerance_of"]

_CERTAIN: Final = 8.0
"""How many standard deviations of a random walk of roundings are allowed."""
_FUNCTION: Final = 4.0
"""Units in the last place by which a function may be off; docs/accuracy.md has what is measured."""
_ROUNDOFF: Final[Mapping[str, float]] = {"fp16": 2.0**-11, "tf32": 2.0**-11, "bf16": 2.0**-8}
_LEAST: Final[Mapping[str, float]] = {"fp16": 2.0**-14}
"""Below it the numbers of a short type lie evenly: the roundoff is a share of it."""
_PRODUCTS: Final = frozenset({"dot", "conv", "conv_transpose", "einsum", "deform_conv", "rnn", "fused"})
_LINEAR: Final = frozenset({"dot", "conv", "conv_transpose", "einsum", "cumulative"})
"""Ops whose result on magnitudes is the magnitude of their terms."""
_ROUNDED: Final = frozenset({"add", "sub", "mul", "convert"})
_EXACT: Final = frozenset({"neg", "abs", "sign", "floor", "ceil", "round", "min", "max", "select"})


@dataclass(frozen=True, slots=True)
class Rounding:
    """The rule: `factor` times a magnitude, two roundings of the result, and for integers `units`.

    `magnitudes` are those of the terms of each element, where they are known; else the largest expected one counts.
    `errors` are absolute, element by element, in place of both. `words` tells it.
    """

    factor: float
    units: int
    words: str
    magnitudes: Array | None = None
    errors: Array | None = None

    def allowed(self, expected: Array, dtype: DType) -> Array:
        """The largest error of each element that rounding explains."""
        finite = np.abs(np.where(np.isfinite(expected), expected, 0.0))
        if self.errors is not None and self.errors.shape == expected.shape:
            base = self.errors
        elif self.magnitudes is not None and self.magnitudes.shape == expected.shape:
            base = self.factor * self.magnitudes
        else:
            base = np.asarray(self.factor * float(finite.max(initial=0.0)))
        info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        flushed = float(ml_dtypes.finfo(dtype.compute.numpy).tiny)  # type: ignore[no-untyped-call]
        return np.asarray(base + float(info.eps) * finite + float(info.smallest_subnormal) + flushed)

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        """Integers made of integers are exact; those that are rounded from floats may be one off."""
        return self.units

    def __str__(self) -> str:
        return self.words


def tolerance_of(
    instruction: Instruction,
    sizes: Mapping[str, int],
    precision: str = "fp32",
    operands: Sequence[Any] | None = None,
) -> Rounding:
    """The rule for the results of an instruction whose operands are true.

    `sizes` are those of the run, by symbol; `precision` is that of the code (fp32, tf32, fp16 or bf16). With the values
    of the `operands` the rule is sharp where results cancel; without, it is relative to the largest magnitude.
    """
    name = instruction.op.name
    unit = _unit(instruction)
    steps = terms_of(instruction, sizes)
    growth = min(steps, _CERTAIN * math.sqrt(steps))
    short = _ROUNDOFF.get(precision, 0.0) * _products(instruction, sizes)
    factor = 2 * unit * growth + 2 * short
    given = [operand for operand in instruction.operands if operand is not None]
    floats = any(isinstance(value.type, TensorType) and value.type.dtype.is_float for value in given)
    magnitudes = errors = None
    if operands is not None and isinstance(instruction.op, Pointwise):
        errors = _followed(instruction.op.formula, operands, unit)
    elif operands is not None:
        magnitudes = _magnitudes(instruction, sizes, operands, _LEAST.get(precision, 0.0) if short else 0.0)
    scale = "the largest expected magnitude" if magnitudes is None else "the sum of the magnitudes of its terms"
    share = f"{factor:.2g} of {scale}, {steps} terms" if errors is None else "the error of each step, followed"
    words = f"{share}, roundoff {unit:.2g}{f', of factors {short:.2g}' if short else ''}"
    makes_integers = name in ("quantize", "pointwise") or bool(instruction.op.modules())
    return Rounding(factor, int(floats and makes_integers), words, magnitudes, errors)


def _products(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """How many products follow one another, at most, each of which rounds its factors: several in a body alone."""
    op, name = instruction.op, instruction.op.name
    inner = max((sum(_products(each, sizes) for each in module.instructions) for module in op.modules()), default=0)
    return int(name in _PRODUCTS) + inner * (_trips(instruction, sizes) if name in ("loop", "scan") else 1)


def terms_of(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """The most roundings that follow one another in an element of the result: the terms of its sum, mostly."""
    op, name = instruction.op, instruction.op.name
    if op.modules():
        inner = sum(terms_of(each, sizes) for module in op.modules() for each in module.instructions)
        return max(inner, 1) * (_trips(instruction, sizes) if name in ("loop", "scan") else 1)
    shapes = [_shape(operand, sizes) for operand in instruction.operands]
    first, second = (*shapes, (), ())[:2]
    match name:
        case "dot":
            return first[-1] if first else 1
        case "conv" | "deform_conv":
            return math.prod(second[1:]) + 1
        case "conv_transpose":
            return (second[0] if second else 1) * math.prod(second[2:]) + 1
        case "rnn":
            return (first[0] if first else 1) * (sum(shape[-1] for shape in shapes[1:3] if shape) + int(_FUNCTION))
        case "einsum":
            return math.prod(_summed(getattr(op, "equation", ""), shapes)) + 1
        case "determinant":
            return (first[-1] if first else 1) ** 2
        case "reduce":
            return math.prod(first) // max(math.prod(_shape(instruction.result(), sizes)), 1) + 1
        case "softmax":
            axis = getattr(op, "axis", -1)
            return (first[axis] if first else 1) + 4 * int(_FUNCTION)
        case "cumulative":
            return max(first, default=1)
        case "dft":
            return 4 * max(math.ceil(math.log2(max(first, default=2))), 1) * int(_FUNCTION)
        case "pool":
            return math.prod(getattr(op, "kernel", ()) or (1,)) + int(_FUNCTION)
        case "pointwise":
            return int(_FUNCTION) * max(len(op.formula.steps), 1) if isinstance(op, Pointwise) else 1
        case "resize" | "grid_sample" | "roi_align" | "max_roi_pool" | "mel_weights" | "tree_ensemble" | "col2im":
            return 64
        case "scatter_elements" | "scatter_nd" | "count_ngrams" | "random":
            return 16
    return 1


def _unit(instruction: Instruction) -> float:
    """The unit roundoff of the type in which the results are computed."""
    types = [kind.dtype for kind in instruction.types if isinstance(kind, TensorType) and kind.dtype.is_float]
    types += [
        operand.dtype
        for operand in instruction.operands
        if operand is not None and isinstance(operand.type, TensorType) and operand.dtype.is_float
    ]
    if not types:
        return 0.0
    widest = max((dtype.compute for dtype in types), key=lambda dtype: dtype.bits)
    return float(np.finfo(widest.numpy).eps) / 2


def _shape(value: Value | None, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of a tensor, 1 where only the run knows one; nothing for what is no tensor of known rank."""
    if value is None or not isinstance(value.type, TensorType) or value.type.dims is None:
        return ()
    found = []
    for dim in value.type.dims:
        try:
            found.append(dims.evaluate(dim, sizes))
        except ModelError:
            found.append(max(dims.bounds(dim)[0] or 1, 1))
    return tuple(found)


def _summed(equation: str, shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """The sizes of the axes that an Einstein sum sums over."""
    terms, _, result = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for letters, shape in zip(terms.split(","), shapes, strict=False):
        head, dots, tail = letters.partition("...")
        sizes |= dict(zip(head, shape, strict=False))
        sizes |= dict(zip(reversed(tail), reversed(shape), strict=False)) if dots else {}
    return [size for letter, size in sizes.items() if letter not in result]


def _trips(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """How often a body runs, where that is known before; else a guess."""
    shapes = [_shape(result, sizes) for result in instruction.results] + [
        _shape(operand, sizes) for operand in instruction.operands
    ]
    return max((shape[0] for shape in shapes if shape), default=64)


def _magnitudes(
    instruction: Instruction, sizes: Mapping[str, int], operands: Sequence[Any], least: float
) -> Array | None:
    """The same op on magnitudes, for ops that are sums: the sum of |term| for each element.

    A factor under `least` counts as that: it is rounded in steps of the least normal number, and no finer.
    """
    kind, axis_sum = instruction.op.name, getattr(instruction.op, "kind", "")
    sums = (
        kind in _LINEAR
        or (kind == "reduce" and axis_sum in ("sum", "mean"))
        or (kind, axis_sum)
        == (
            "pool",
            "average",
        )
    )
    if not sums or (kind == "cumulative" and axis_sum != "sum"):
        return None
    wide = [
        np.where(value == 0, 0.0, np.maximum(np.abs(value.astype(np.float64)), least))
        if isinstance(value, np.ndarray) and dtype_of(value.dtype).is_float
        else value
        for value in operands
    ]
    op = replace(instruction.op, dtype=FLOAT64) if getattr(instruction.op, "dtype", None) else instruction.op  # type: ignore[type-var]
    try:
        with np.errstate(all="ignore"):
            (found,) = evaluate(replace(instruction, op=op), Env(dict(sizes)), wide)
    except ModelError:
        return None
    return np.asarray(found) if np.asarray(found).dtype == np.float64 else None


def _followed(formula: Formula, operands: Sequence[Any], unit: float) -> Array | None:
    """The error of each element of a formula in a type of roundoff `unit`, by following it through the steps."""
    values: list[Array] = []
    for operand in operands:
        array = np.asarray(operand)
        dtype = dtype_of(array.dtype)
        if dtype.kind in ("complex", "string"):
            return None
        values.append(array.astype(np.float64) if dtype.is_float else array.astype(dtype.compute.numpy))
    errors: list[Any] = [0.0] * len(values)
    dtypes = [dtype_of(np.asarray(operand).dtype) for operand in operands]
    with np.errstate(all="ignore"):
        for step, dtype in zip(formula.steps, formula.step_dtypes(dtypes), strict=True):
            floats = [ref for ref in step.args if isinstance(ref, int) and values[ref].dtype.kind == "f"]
            args = [
                np.asarray(ref.value, np.float64 if floats else None) if isinstance(ref, Constant) else values[ref]
                for ref in step.args
            ]
            value = _stepped(step.primitive, args, dtype)
            error: Any = np.zeros(())
            for place, ref in enumerate(step.args):
                if isinstance(ref, int) and np.any(errors[ref]):
                    error = error + _moved(step.primitive, args, place, errors[ref], value, dtype)
            if value.dtype.kind == "f" and step.primitive not in _EXACT:
                own = step.primitive == "convert" and dtype.bits == 16  # which is rounding, and means nothing else
                roundoff = float(ml_dtypes.finfo(dtype.numpy).eps) / 2 if own else unit  # type: ignore[no-untyped-call]
                share = (2.0 if step.primitive in _ROUNDED else 2 * _FUNCTION) * max(roundoff, unit)
                error = error + share * np.abs(np.where(np.isfinite(value), value, 0.0))
            values.append(value)
            errors.append(error)
    shape = np.broadcast_shapes(*(value.shape for value in values[: formula.arity]))
    return np.asarray(np.broadcast_to(np.nan_to_num(errors[-1], nan=np.inf), shape), np.float64)


def _stepped(primitive: str, args: Sequence[Array], dtype: DType) -> Array:
    """One step in float64, or in the type of its integers."""
    if primitive == "convert":
        if dtype.is_float:
            return (convert(args[0], dtype) if dtype.bits < 16 else args[0]).astype(np.float64)
        return convert(args[0], dtype).astype(dtype.compute.numpy)
    return np.asarray(NUMPY[primitive](*args))


def _moved(primitive: str, args: Sequence[Array], place: int, error: Any, value: Array, dtype: DType) -> Any:
    """By how much a step changes where one of its arguments is off by up to `error`."""
    most: Any = 0.0
    for sign in (-1, 1):
        moved = [_off(arg, sign * error) if index == place else arg for index, arg in enumerate(args)]
        changed = _stepped(primitive, moved, dtype)
        most = np.maximum(most, np.abs(changed.astype(np.float64) - value.astype(np.float64)))
    return most


def _off(value: Array, error: Any) -> Array:
    """A value moved by an error; a bool is another one."""
    if value.dtype.kind == "b":
        return np.asarray(np.where(np.abs(error) > 0, ~value, value))
    return np.asarray(value + error).astype(value.dtype)

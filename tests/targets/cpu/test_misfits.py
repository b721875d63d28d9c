"""Native code refuses the sizes of operands that the interpreter refuses, for every op.

Samples come from the generators that `infer` is tested with. Here every dim of every operand is a symbol of its own,
so that all that the op asks of sizes is left to the run; there each dim in turn is given sizes that may not fit.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from argosy.errors import ArgosyError, CompileError
from argosy.ir import Builder, Module, Symbol, TensorType, Value, symbol_dim
from tests.properties.sample import Binding, Draw, Made, Sample
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.test_ops import GENERATORS, native_ops

OFTEN = ("concat", "conv", "conv_transpose", "deform_conv", "dequantize", "dot", "einsum", "resize", "split")
"""Ops that every change is checked with."""
NOT_YET = {
    "pad": "of axes that only the run knows, an empty one is padded in every mode",
    "reverse_sequence": "native code looks at a length where it moves an element, so not where there is none",
    "tree_ensemble": "samples may leave open how many features their nodes read",
}
"""Ops that differ where a tensor is empty, and why."""


def program(sample: Sample, binding: Binding) -> tuple[Module, list[Any]] | None:
    """The sample with symbols for all dims, and arguments that fit; None where kernels can't hold its values."""
    if sample.op.modules():
        return None  # bodies state the dims of what they take
    builder = Builder()
    operands: list[Value | None] = []
    arguments: list[Any] = []
    for index, operand in enumerate(sample.operands):
        if isinstance(operand, Made):
            return None
        if operand is None:
            operands.append(None)
        elif operand.constant:
            operands.append(builder.constant(operand.array({})))
        else:
            array = operand.array(binding)
            # Numbers that steer an op are as many as its operands have axes.
            steers = operand.dtype.is_integer and array.ndim <= 1
            dims = array.shape if steers else [symbol_dim(Symbol(f"d{index}_{a}")) for a in range(array.ndim)]
            arguments.append(array)
            operands.append(builder.parameter(f"x{index}", TensorType(operand.dtype, tuple(dims))))
    try:
        results = builder.add_all(sample.op.bind(binding), *operands)
    except ArgosyError:
        return None  # it asks for a number that it must have
    kinds = [value.type for value in (*results, *(operand for operand in operands if operand is not None))]
    if any(not isinstance(kind, TensorType) or kind.dims is None or kind.dtype.kind == "string" for kind in kinds):
        return None
    return builder.module([(f"y{index}", value) for index, value in enumerate(results)]), arguments


def resized(array: Any, axis: int, size: int) -> Any:
    """The same elements, again and again, in a shape with another size of one axis."""
    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def variants(arguments: Sequence[Any]) -> Iterator[list[Any]]:
    """The arguments, and what they are with one size changed.

    A size of 0 beside one of 1 is left out: where neither was known native code refuses to repeat the one 0 times.
    """
    if not {0, 1} <= {s for one in arguments for s in one.shape}:
        yield list(arguments)
    for place, array in enumerate(arguments):
        for axis, size in enumerate(array.shape):
            for other in sorted({0, 1, size - 1, size + 1} - {size, -1}):  # a fixed one is refused as any input is
                changed = [*arguments[:place], resized(array, axis, other), *arguments[place + 1 :]]
                if not {0, 1} <= {s for one in changed for s in one.shape}:
                    yield changed


def run(name: str, number: int) -> None:
    """Check sample `number` of an op with many sizes."""
    sample = GENERATORS[name](Draw(random.Random(number)))
    made = program(sample, sample.bindings[0])
    if made is not None:
        main, arguments = made
        with contextlib.suppress(CompileError):  # a host step: then the interpreter itself does it
            check(main, [(given, {}) for given in variants(arguments)], f"{name}, number {number}: {sample.op}")


@pytest.mark.parametrize("name", OFTEN)
def test_sizes_that_may_not_fit(name: str) -> None:
    for number in range(2):
        run(name, number)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in native_ops() if name not in NOT_YET])
def test_sizes_that_may_not_fit_more_often(name: str) -> None:
    for number in range(20):
        run(name, number)

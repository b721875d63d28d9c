"""Native code means what the interpreter means, for every op that has a kernel.

Samples come from the generators that `infer` is tested with: random shapes and element types, empty tensors,
absent operands, symbolic dims at two sizes, steering operands that only the run knows.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from argosy.ir import Builder, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import BOOL
from tests.properties.generators import elements, values, views, windows
from tests.properties.sample import Draw, Made, Operand, Sample
from tests.targets.cpu.against_ref import check

GENERATORS = {**views.GENERATORS, **elements.GENERATORS, **windows.GENERATORS, **values.GENERATORS}
ON_THE_HOST = {
    "decode_image", "format_numbers", "map_construct", "map_entries", "map_labels", "optional", "optional_get_element",
    "optional_has_element", "parse_numbers", "regex_match", "sequence_at", "sequence_concat", "sequence_construct",
    "sequence_erase", "sequence_insert", "sequence_length", "sequence_split", "string_concat", "string_normalize",
    "string_split",
}  # fmt: skip
"""Strings, sequences, maps and codecs."""
ELSEWHERE = {"fused": "what its module holds", "random": "test_random: depends on the number of the run"}
SAMPLES = 3


def build(sample: Sample) -> tuple[Builder, list[Value], list[Operand]] | None:
    """The sample as a program, whose first parameters give all symbols their values; its other parameters.

    None where a value is no tensor that kernels can hold.
    """
    if any(isinstance(operand, Made) for operand in sample.operands):
        return None
    builder = Builder()
    for name in sorted(sample.bindings[0]):
        builder.parameter(f"size_{name}", TensorType(BOOL, (symbol_dim(Symbol(name)),)))
    operands: list[Value | None] = []
    given: list[Operand] = []
    for index, operand in enumerate(sample.operands):
        if isinstance(operand, Operand):
            operands.append(operand.build(builder, f"x{index}"))
            if not operand.constant and operand.known is None:
                given.append(operand)
        else:
            operands.append(None)
    results = list(builder.add_all(sample.op, *operands))
    for value in (*results, *(operand for operand in operands if operand is not None)):
        kind = value.type
        if not isinstance(kind, TensorType) or kind.dims is None or kind.dtype.kind == "string":
            return None
    return builder, results, given


def run(name: str, number: int) -> bool:
    """Check sample `number` of an op; False where kernels can't hold its values."""
    sample = GENERATORS[name](Draw(random.Random(number)))
    made = build(sample)
    if made is None:
        return False
    builder, results, given = made
    main = builder.module([(f"y{index}", value) for index, value in enumerate(results)])
    cases = []
    for binding in sample.bindings:
        sizes = [np.zeros(size, np.bool_) for _, size in sorted(binding.items())]
        cases.append(([*sizes, *(operand.array(binding) for operand in given)], binding))
    check(main, cases, f"{name}, number {number}: {sample.op}")
    return True


def native_ops() -> list[str]:
    return sorted(GENERATORS.keys() - ON_THE_HOST - ELSEWHERE.keys())


@pytest.mark.parametrize("name", native_ops())
def test_native_code_agrees_with_the_interpreter(name: str) -> None:
    held = [run(name, number) for number in range(SAMPLES)]
    assert any(held)


@pytest.mark.nightly
@pytest.mark.parametrize("name", native_ops())
def test_native_code_agrees_with_the_interpreter_more_often(name: str) -> None:
    for number in range(100):
        run(name, number)

"""Tables of times: how wide, in which order, with which sums and units."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from argosy.profiling.instructions import InstructionTime, by_op, by_shape
from argosy.profiling.tables import WIDTH, instruction_table, op_table, shape_table

LONG = "/encoder/layers.11/self_attn/a/part/whose/name/has/more/characters/than/anybody/would/like/to/read/MatMul"


def entry(
    seconds: float, share: float, op: str = "dot", node: str = "mm", operands: str = "float32[2]"
) -> InstructionTime:
    return InstructionTime(
        node=node,
        op=op,
        operands=operands,
        type="float32[2]",
        calls=1,
        seconds=seconds,
        share=share,
        operations=10**6 if op == "dot" else 0,
        bytes=10**4,
    )


ENTRIES = [
    entry(0.001, 0.1),
    entry(0.004, 0.4, node=LONG),
    entry(0.003, 0.3, op="reduce_max_reshape_sub_mul_convert_loops", node="/a/Softmax"),
    entry(0.002, 0.2, op="softmax_rows", node="/b/Softmax", operands=", ".join(["float32[1, 12, 384, 384]"] * 6)),
]


def shares(lines: Sequence[str]) -> list[float]:
    return [float(found[1]) for line in lines if (found := re.match(r" +([\d.]+)%", line))]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_each_is_sorted_and_sums_to_all_in_a_hundred_columns(most: int) -> None:
    for lines in (
        list(op_table(by_op(ENTRIES), most)),
        list(shape_table(by_shape(ENTRIES), most)),
        list(instruction_table(ENTRIES, most)),
    ):
        assert max(map(len, lines)) <= WIDTH
        found = shares(lines)
        assert sum(found) == pytest.approx(100)
        assert found[:most] == sorted(found[:most], reverse=True)
        left = [line for line in lines if line.endswith(" more, in --json")]
        assert len(left) == (len(found) > most)


def test_units_are_in_the_heading_and_fit_what_is_below() -> None:
    heading, first, *_ = instruction_table(ENTRIES, 4)
    assert heading.split() == ["share", "time,", "ms", "GFLOP/s", "GB/s", "op", "node"]
    assert first.split() == ["40.0%", "4.000", "0.25", "0.0025", "dot"], "a long name is below"
    heading, first = op_table(by_op([entry(2.5e-6, 1.0, op="softmax_rows")]), 4)
    assert heading.split() == ["share", "time,", "µs", "GB/s", "op"], "nothing is multiplied"
    assert first.split() == ["100.0%", "2.5", "4.0", "1", "x", "softmax_rows"]
    heading, first = op_table(by_op(ENTRIES[:1]), 4, rated=False)
    assert (heading.split(), first.split()) == (["share", "time,", "ms", "op"], ["10.0%", "1.000", "1", "x", "dot"])


def test_names_and_types_are_whole_or_end_as_why_knows_them() -> None:
    lines = list(instruction_table(ENTRIES, 4))
    (name,) = [line.strip() for line in lines if line.strip().startswith("…/")]
    assert LONG.endswith(name[1:])
    assert any(line.endswith("softmax_rows                  /b/Softmax") for line in lines)
    assert "reduce_max_reshape_sub_mul_convert_loops" in "\n".join(lines)
    shapes = list(shape_table(by_shape(ENTRIES), 4))
    assert sum(line.count("float32[1, 12, 384, 384]") for line in shapes) == 6, "none is broken"

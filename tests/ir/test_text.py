"""The text form: what is printed reads back as the same program and prints the same again."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.errors import InternalError, ModelError
from argosy.ir import Builder, Formula, Literal, Program, Type, dtype
from argosy.ir.lexer import quote, unquote
from argosy.ir.parser import parse_program, parse_type
from argosy.ir.printer import Writer, print_module, print_program
from tests.ir.dims import BY_NAME
from tests.ir.ops import Anything, Bodies, Counted
from tests.ir.programs import attributes, programs, texts, types
from tests.ir.structure import literals_in, same_program, same_value

slow = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def reread(program: Program) -> Program:
    return parse_program(print_program(program), {literal.digest: literal for literal in literals_in(program)})


@slow
@given(programs)
def test_programs_read_back(program: Program) -> None:
    again = reread(program)
    assert same_program(program, again)
    assert print_program(again) == print_program(program)


@slow
@given(attributes)
def test_attributes_read_back(value: Any) -> None:
    builder = Builder()
    builder.add_all(Anything(value))
    again = reread(Program(builder.module({})))
    assert same_value(again.main.instructions[0].op, Anything(value))


@given(texts)
def test_quoted_strings_read_back_on_one_line_of_utf8(text: str) -> None:
    quoted = quote(text)
    assert unquote(quoted) == text
    assert "\n" not in quoted
    assert quoted.encode()


@given(types)
def test_types_read_back(kind: Type) -> None:
    assert parse_type(str(kind), BY_NAME) == kind
    assert Writer().type(kind) == str(kind)


def example() -> Program:
    inner = Builder("then branch")
    inner_x = inner.tensor_parameter("x", "float32", ["N"])
    body = inner.module({"out": inner.pointwise("neg", inner_x)})
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 4])
    w = b.constant(np.array([0.1, 1.0, -0.0, np.inf], np.float32), name="layer.weight")
    big = b.constant(np.zeros((4, 4), np.int8))
    y = b.pointwise(lambda a, c: (a < 0).select(a * 0.1, c), x, w, names=["/block/Mul"], source="/block/node")
    c, d = b.add_all(Counted(), y, None, big, names=["c", ""])
    z = b.add(Bodies(body), c, d, names=["y"], source="If (node 3 → 'y')")
    return Program(b.module({"y": z, "d out": d}), {"producer": 'py"torch'})


EXPECTED = """\
argosy 1
metadata "producer" = "py\\"torch"
symbol N: 0..
symbol test_counted_rows0: 1..7
symbol test_counted_columns0: 0..
module main(%x: float32[N, 4]) {
  %layer.weight = constant float32[4] dense(0.1, 1.0, -0.0, inf)
  %2 = constant int8[4, 4] sha256:374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb
  %3 = pointwise(%x, %layer.weight) {formula = |x0, x1| t0 = lt(x0, 0); t1 = mul(x0, 0.1); select(t0, t1, x1)} \
: float32[N, 4] as "/block/Mul" from "/block/node"
  %c, %5 = test_counted(%3, _, %2) : int64[test_counted_rows0, 2], bool[test_counted_rows0, test_counted_columns0]
  %y = test_bodies(%c, %5) {
    body = module "then branch"(%x: float32[N]) {
      %1 = pointwise(%x) {formula = |x0| neg(x0)} : float32[N]
      return out = %1
    }
  } : float32[N] from "If (node 3 → 'y')"
  return y = %y, "d out" = %5
}
"""


def test_the_text_is_what_people_read() -> None:
    assert print_program(example()) == EXPECTED
    assert same_program(reread(example()), example())


def test_a_module_alone_reads_as_a_program() -> None:
    text = print_module(example().main)
    assert "metadata" not in text
    again = parse_program(text, {literal.digest: literal for literal in literals_in(example())})
    assert print_module(again.main) == text


def test_comments_and_spaces_mean_nothing() -> None:
    text = (
        "symbol N:0..# all\nmodule main(%x:float32[N])\n{%y=pointwise(%x){formula=|x0|neg(x0)}:float32[ N ]return y=%y}"
    )
    assert print_program(parse_program(text)).count("\n") == 6


def test_many_parameters_stand_on_lines_of_their_own() -> None:
    b = Builder()
    for number in range(20):
        b.tensor_parameter(f"past_key_values.{number}.key", "float16", ["batch", 8, "past", 64])
    program = Program(b.module({}))
    assert max(map(len, print_program(program).splitlines())) < 120
    assert same_program(reread(program), program)


def test_the_second_value_of_a_name_has_a_number() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    y = b.pointwise("neg", x, names=["x"])
    program = Program(b.module({"y": y}))
    assert '%1 = pointwise(%x) {formula = |x0| neg(x0)} : float32[2] as "x"' in print_program(program)
    assert same_program(reread(program), program)


def test_one_digest_serves_every_shape_and_type() -> None:
    b = Builder()
    flat = np.arange(16, dtype=np.float32)
    values = [b.constant(array) for array in (flat, flat.reshape(4, 4), flat.view(np.int32))]
    program = Program(b.module({f"y{n}": value for n, value in enumerate(values)}))
    stored = Literal.of(flat)
    again = parse_program(print_program(program), lambda digest: {stored.digest: stored}[digest])
    assert same_program(again, program)
    for literal in again.literals:
        assert np.shares_memory(literal.stored, flat)


def test_a_value_that_files_cannot_hold_is_refused() -> None:
    b = Builder()
    b.add_all(Anything(np.int64(3)))
    with pytest.raises(InternalError, match="a int64"):
        print_program(Program(b.module({})))


def test_numpy_scalars_become_constants_of_formulas() -> None:
    formula = Formula.trace(lambda x: np.float64(2.5) + x * np.float32(0.5) + np.int64(3), 1)
    assert str(formula) == "|x0| t0 = mul(x0, 0.5); t1 = add(2.5, t0); add(t1, 3)"


def test_broken_modules_print_too() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    y = b.pointwise("neg", b.pointwise("neg", x))
    other = Builder()
    other.adopt(x.instruction)
    other.keep(y.instruction, y.instruction.operands)
    assert "pointwise(%undefined)" in print_module(other.module({"y": y}))


@pytest.mark.parametrize("width", [1_000, 10_000])
def test_cost_per_instruction_does_not_grow(width: int) -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 3, "H", "W"])
    y = x
    for number in range(width):
        y = b.pointwise("add", x, y, names=[f"v{number}"], source=f"node{number}")
    program = Program(b.module({"y": y}))
    times = []
    for _ in range(3):  # the least counts: in one of them Python may look through all that the tests hold for garbage
        start = time.process_time()
        text = print_program(program)
        printed = time.process_time()
        parse_program(text)
        times.append((printed - start, time.process_time() - printed))
    # Ten times what a two-core machine takes: this finds quadratic cost, not a slow machine.
    assert min(printing for printing, _ in times) < width * 100e-6
    assert min(parsing for _, parsing in times) < width * 1000e-6


def test_parsing_asks_for_no_constant_that_is_written_out() -> None:
    b = Builder()
    b.constant(Literal.splat(1.5, dtype("float16"), (1000, 1000)))
    b.constant(np.arange(8))
    program = Program(b.module({}))
    assert same_program(parse_program(print_program(program)), program)


@slow
@given(st.data())
def test_altered_text_is_refused_or_read(data: st.DataObject) -> None:
    text = print_program(example())
    literals = {literal.digest: literal for literal in literals_in(example())}
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 8, len(text))))
    middle = data.draw(st.one_of(st.text(max_size=4), st.sampled_from(text.split())))
    try:
        again = parse_program(text[:start] + middle + text[end:], literals)
    except ModelError:
        return  # and nothing else comes out
    assert same_program(reread(again), again)

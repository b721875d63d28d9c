"""What the parser refuses: where, what was expected, what stands there. And nothing but ModelError comes out."""

from __future__ import annotations

import pytest

from argosy.errors import ModelError
from argosy.ir import Literal, Symbol
from argosy.ir.parser import parse_dim, parse_program, parse_type

HEAD = "symbol N: 0..\nmodule main(%x: float32[N]) {\n"


def program(statement: str) -> str:
    return f"{HEAD}  {statement}\n  return\n}}\n"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "line 1, column 1", "expected 'module', found the end of the text"),
        ("argosy 2 module m() { return }", "line 1, column 8", "expected version 1 of the text form, found '2'"),
        ("module main() {", "line 1, column 16", "expected a word, found the end"),
        ("module main() { return } module", "line 1, column 26", "expected the end of the text"),
        ("symbol N: 3..2 module main() { return }", "line 1, column 8", "3..2 hold no number"),
        ("symbol N: 0..\nsymbol N: 0..", "line 2, column 8", "not declared yet, found 'N'"),
        ("module main(%0: float32[]) { return }", "line 1, column 26", 'the name of the parameter %0: as "…"'),
        ('module main(%x: int8[], %0: int8[] as "x") { return }', "line 1, column 25", "a parameter other than 'x'"),
        ("module main(%x: int8[]) { return y = %x, y = %x }", "line 1, column 42", "a result other than 'y'"),
        (program("%y = neg(%x) : float32[N]"), "line 3, column 8", "there is no op 'neg'"),
        (program("%y = constant float32[2] dense(1.0, 2)"), "line 3, column 28", "2 is no float32"),
        (program("%y = constant float32[2] dense(1.0)"), "line 3, column 28", "1 elements for 2"),
        (program("%y = constant uint8[1] dense(256)"), "line 3, column 26", "256 is no uint8"),
        (program("%y = constant int4[1] dense(-9)"), "line 3, column 25", "-9 is no int4"),
        (program("%y = constant float16[1] dense(0x10000)"), "line 3, column 28", "0x10000 has more bits than float16"),
        (
            program("%y = constant float32[N] dense()"),
            "line 3, column 28",
            "a constant can't be of the type float32[N]",
        ),
        (program("%y = constant float32[2] sha256:" + "0" * 64), "line 3, column 28", "there is no constant with the"),
        (program("%y = pointwise(%z)"), "line 3, column 18", "a value defined before in this module, found '%z'"),
        (program("%x = pointwise(%x)"), "line 3, column 3", "a new value: %x is defined already"),
        (program("%y, %y = pointwise(%x)"), "line 3, column 7", "a new value: %y is defined already"),
        (program("%y = pointwise(%x) : float32[N]"), "line 3, column 8", "pointwise needs the attributes formula"),
        (
            program("%y = pointwise(%x) {form = 1}"),
            "line 3, column 23",
            "an attribute of pointwise that is not given yet",
        ),
        (
            program("%y = pointwise(%x) {formula = |x0| nag(x0)}"),
            "line 3, column 38",
            "a scalar primitive, found 'nag'",
        ),
        (program("%y = pointwise(%x) {formula = |x0| neg(x1)}"), "line 3, column 42", "an input, an earlier step or"),
        (program("%y = pointwise(%x) {formula = |x0| add(x0)}"), "line 3, column 38", "add with 2 arguments"),
        (program("%y = pointwise(%x) {formula = |x1| neg(x1)}"), "line 3, column 34", "expected x0, found 'x1'"),
        (
            program("%y = pointwise(%x) {formula = |x0| neg(x0)} : float32[3]"),
            "line 3, column 8",
            "pointwise gives float32[N], not float32[3]",
        ),
        (
            program("%y = pointwise(%x) {formula = |x0| not(x0)} : float32[N]"),
            "line 3, column 8",
            "not is not defined for",
        ),
        (program("%y = pointwise(%x) {formula = 1.0} : float32[N]"), "line 3, column 8", "pointwise can't have these"),
        (
            program('%y = reduce(%x) {kind = "product"} : float32[]'),
            "line 3, column 8",
            "there is no reduction of kind",
        ),
        (program("%y = pointwise@2(%x) {}"), "line 3, column 8", "expected version 1 of pointwise"),
        (program("%y = parameter() {type = int8[]} : int8[]"), "line 3, column 8", "an op other than a parameter"),
        (
            program("%y, %z = pointwise(%x) {formula = |x0| neg(x0)} : float32[N]"),
            "line 3, column 12",
            "2 types, one for",
        ),
        (
            program("%y = pointwise(%x) {formula = |x0| neg(x0)} : float32[M]"),
            "line 3, column 57",
            "there is no symbol M",
        ),
        (program("%y = test_anything@3() {value = mod(N, 0)}"), "line 3, column 35", "divided by zero"),
        (program('%y = test_anything@3() {value = "\\q"}'), "line 3, column 35", "unknown escape \\q"),
        (program("%y = test_anything@3() {value = 'a'}"), "line 3, column 35", 'unexpected character "\'"'),
        (program('%y = test_anything@3() {value = "a'), "line 3, column 35", "unexpected character '\"'"),
        (program("%y = test_anything@3() {value = [1 2]}"), "line 3, column 38", "expected ',', found '2'"),
        (program("%y = test_anything@3() {value = }"), "line 3, column 35", "a number, a symbol or a function of dims"),
        (
            program("%y = test_anything@3() {value = " + "9" * 5000 + "}"),
            "line 3, column 35",
            "expected a whole number",
        ),
    ],
)
def test_errors_say_where_and_what(text: str, where: str, what: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_program(text)
    assert where in caught.value.where
    assert what in caught.value.what


def test_a_misspelt_op_is_suggested() -> None:
    with pytest.raises(ModelError, match="did you mean 'pointwise'"):
        parse_program(program("%y = pointwize(%x)"))


@pytest.mark.parametrize(
    "value",
    [
        "[" * 100_000,
        "sequence(" * 100_000,
        "min(" * 100_000 + "N",
        "module a() { %a = test_anything@3() {value = " * 5_000,
    ],
)
def test_deep_nesting_is_refused(value: str) -> None:
    with pytest.raises(ModelError, match="nested too deeply"):
        parse_program(program(f"%y = test_anything@3() {{value = {value}"))


def test_a_constant_of_the_wrong_size_is_refused() -> None:
    text = program("%y = constant float32[3] sha256:" + "0" * 64)
    with pytest.raises(ModelError, match=r"does not fit float32\[3\]"):
        parse_program(text, lambda _digest: Literal.of([1.0, 2.0]))


def test_types_and_dims_alone() -> None:
    symbols = {"N": Symbol("N")}
    assert str(parse_type("sequence(float32[N + N])", symbols)) == "sequence(float32[2*N])"
    for text in ("float32", "float32[N", "float32[N] x", "N", "float32[M]"):
        with pytest.raises(ModelError):
            parse_type(text, symbols)
    for text in ("N +", "", "N N", "M", "1.5", "min(N)"):
        with pytest.raises(ModelError):
            parse_dim(text, symbols)

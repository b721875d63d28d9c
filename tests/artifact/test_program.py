"""Program records: both encodings round-trip exactly, and each rule of a valid program is held."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.artifact import program as p
from argosy.artifact.program_check import check_program, read_program
from argosy.errors import ArtifactError
from argosy.ir.dtype import DTYPES
from tests.artifact import samples

# ------------------------------------------------------------------------------------ round trips

text = st.text(max_size=8)
name = st.text(min_size=1, max_size=8)
int64 = st.integers(-(1 << 63), (1 << 64) - 1)
floats = st.one_of(
    st.floats(), st.integers(0, (1 << 64) - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
)
float_values = floats.map(lambda value: p.FloatValue(p.float_text(value)))
dtypes = st.sampled_from([dtype for dtype in DTYPES.values() if dtype.kind != "string"])
dims = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def inline_literals(draw: st.DrawFn) -> p.InlineLiteral:
    dtype, shape = draw(dtypes), draw(dims)
    size = dtype.byte_size(math.prod(shape))
    return p.InlineLiteral(dtype.name, draw(st.binary(min_size=size, max_size=size)), shape)


@st.composite
def splats(draw: st.DrawFn) -> p.SplatLiteral:
    dtype = draw(dtypes)
    size = dtype.byte_size(1)
    return p.SplatLiteral(dtype.name, draw(st.binary(min_size=size, max_size=size)), draw(dims))


@st.composite
def strings(draw: st.DrawFn) -> p.StringsLiteral:
    shape = draw(dims)
    count = math.prod(shape)
    return p.StringsLiteral(tuple(draw(st.lists(text, min_size=count, max_size=count))), shape)


@st.composite
def formulas(draw: st.DrawFn) -> p.FormulaValue:
    arity = draw(st.integers(0, 3))
    constants = st.one_of(st.booleans(), int64, float_values).map(p.ConstantRecord)
    steps = []
    for position in range(draw(st.integers(1, 4))):
        known = arity + position
        args = st.one_of(constants, st.integers(0, known - 1)) if known else constants
        dtype = draw(st.one_of(st.just(""), dtypes.map(lambda row: row.name)))
        steps.append(p.FormulaStep(draw(name), tuple(draw(st.lists(args, max_size=3))), dtype))
    return p.FormulaValue(arity, tuple(steps))


plain_values: st.SearchStrategy[p.Value] = st.one_of(
    st.none(),
    st.booleans(),
    int64,
    text,
    float_values,
    st.binary(max_size=8).map(p.BytesValue),
    dtypes.map(lambda dtype: p.DTypeValue(dtype.name)),
    name.map(p.DimValue),
    name.map(p.TypeValue),
    st.builds(p.LiteralRef, st.from_regex(r"[0-9a-f]{64}", fullmatch=True), dtypes.map(str), dims),
    inline_literals(),
    splats(),
    strings(),
    formulas(),
)
values = st.recursive(
    plain_values, lambda inner: st.lists(inner, max_size=3).map(lambda v: p.TupleValue(tuple(v))), max_leaves=4
)


@st.composite
def modules(draw: st.DrawFn, index: int, count: int) -> p.ModuleRecord:
    unique = st.lists(name, max_size=3, unique=True)
    parameters = tuple(p.NamedType(each, draw(name)) for each in draw(unique))
    refs: list[p.Ref] = [(p.PARAMETER, position) for position in range(len(parameters))]
    instructions = []
    # Each module but the main one must be held: module i holds module i + 1.
    held: list[dict[str, p.Value]] = [{"body": p.ModuleValue(index + 1)}] if index + 1 < count else []
    for position in range(draw(st.integers(len(held), 3))):
        operand = st.one_of(st.none(), st.sampled_from(refs)) if refs else st.none()
        attributes = draw(st.dictionaries(name, values, max_size=2)) | (held[0] if held and position == 0 else {})
        results = tuple(draw(st.lists(name, max_size=2)))
        names = tuple(draw(st.one_of(st.just([]), st.lists(text, min_size=len(results), max_size=len(results)))))
        operands = tuple(draw(st.lists(operand, max_size=3)))
        version = draw(st.integers(1, 99))
        instructions.append(p.InstructionRecord(draw(name), version, operands, results, attributes, names, draw(text)))
        refs += [(position, result) for result in range(len(results))]
    returned = tuple(p.NamedValue(each, draw(st.sampled_from(refs))) for each in draw(unique)) if refs else ()
    return p.ModuleRecord(draw(text), parameters, tuple(instructions), returned)


@st.composite
def symbols(draw: st.DrawFn) -> tuple[p.SymbolRecord, ...]:
    rows = []
    for each in draw(st.lists(name, max_size=3, unique=True)):
        lower = draw(st.integers(-(1 << 63), (1 << 63) - 1))
        rows.append(p.SymbolRecord(each, lower, draw(st.one_of(st.none(), st.integers(lower, (1 << 63) - 1)))))
    return tuple(rows)


@st.composite
def programs(draw: st.DrawFn) -> p.ProgramRecord:
    count = draw(st.integers(1, 3))
    return p.ProgramRecord(
        tuple(draw(modules(index, count)) for index in range(count)),
        draw(symbols()),
        draw(st.dictionaries(name, text, max_size=2)),
    )


@settings(max_examples=300, deadline=None)
@given(programs())
def test_valid_programs_round_trip_in_both_encodings(program: p.ProgramRecord) -> None:
    check_program(program, "program")
    raw = p.PROGRAM.to_msgpack(program)
    assert read_program(raw, where="program") == program
    json = p.PROGRAM.to_json(program)
    assert p.PROGRAM.from_json(json, where="program") == program
    assert p.PROGRAM.to_msgpack(p.PROGRAM.from_json(json, where="program")) == raw


@given(floats)
def test_floats_keep_their_bits(value: float) -> None:
    back = p.parse_float(p.float_text(value))
    assert struct.pack("<d", back) == struct.pack("<d", value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "1.50", "+1.0", " 1.0", "1_0.0", "Infinity", "NaN"),
        *("nan:", "nan:7ff8000000000000", "nan:0000000000000000", "nan:fffffffffffffffffff"),
    ],
)
def test_float_texts_that_are_not_the_shortest_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any message will do
        p.parse_float(text)


def test_text_that_is_no_unicode_is_refused_when_writing() -> None:
    bad = p.ProgramRecord((p.ModuleRecord("\ud800"),))
    with pytest.raises(ArtifactError, match="can't be written"):
        p.PROGRAM.to_msgpack(bad)


# ------------------------------------------------------------------------------------------ rules


def refusal(change: Callable[[dict[str, Any]], object]) -> str:
    tree = msgspec.msgpack.decode(p.PROGRAM.to_msgpack(samples.program()))
    change(tree)
    with pytest.raises(ArtifactError) as caught:
        read_program(msgspec.msgpack.encode(tree, order="sorted"), where="program.msgpack")
    assert str(caught.value).startswith("program.msgpack")
    return str(caught.value)


def attribute(value: object) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree["modules"][0]["instructions"][2]["attributes"].update(new=value)


def instruction(**fields: object) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree["modules"][0]["instructions"][2].update(fields)


def module(index: int, **fields: object) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree["modules"][index].update(fields)


def holding(index: int) -> object:
    return {"op": "if", "version": 1, "attributes": {"body": {"kind": "module", "index": index}}}


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"kind": "tuple", "items": [value]}
    return value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (instruction(operands=[[-1, 2]]), "module 0 'main', instruction 2 (pointwise), operand 0: it is param"),
        (instruction(operands=[None, [-2, 0]]), "operand 1: it is a result of instruction -2"),
        (instruction(operands=[[2, 0]]), "instruction 2, which does not precede it"),
        (instruction(operands=[[1, 1]]), "result 1 of instruction 1, which has 1"),
        (instruction(operands=[[1, -1]]), "result -1"),
        (instruction(operands=[[1 << 62, 1]]), "does not precede"),
        (instruction(version=0), "version of its op is 0"),
        (instruction(op=""), "op is empty"),
        (instruction(results=[""]), "type of a result is empty"),
        (instruction(names=["a", "b"]), "2 names for 1 results"),
        (instruction(source="x" * 70000), "70000 characters"),
        (module(0, results=[{"name": "out", "value": [9, 0]}]), "result 0: it is a result of instruction 9"),
        (module(0, results=[{"name": "a", "value": [0, 0]}] * 2), "two outputs are called 'a'"),
        (module(0, parameters=[{"name": "", "type": "t"}] * 2), "the name of an input is empty"),
        (module(1, instructions=[holding(1)]), "not one of those after"),
        (module(1, instructions=[holding(0)]), "not one of those after"),
        (attribute({"kind": "module", "index": 2}), "it holds module 2"),
        (lambda tree: tree["modules"].append({"name": "lost"}), "no instruction holds this module"),
        (lambda tree: tree.update(modules=[]), "no modules"),
        (lambda tree: tree["symbols"].append({"name": "N"}), "listed twice"),
        (lambda tree: tree["symbols"].append({"name": "Q", "lower": 3, "upper": 2}), "bounds are 3 and 2"),
        (attribute({"kind": "float", "text": "1.00"}), "shortest form"),
        (attribute({"kind": "dtype", "name": "float31"}), "unknown element type"),
        (attribute({"kind": "literal", "dtype": "float32", "dims": [2], "data": b"1234"}), "4 bytes for 2 elements"),
        (attribute({"kind": "literal", "dtype": "uint8", "dims": [4097], "data": bytes(4097)}), "not written inline"),
        (attribute({"kind": "literal", "dtype": "string", "data": b""}), "not written inline"),
        (attribute({"kind": "splat", "dtype": "float32", "dims": [9], "data": b"1"}), "1 bytes for 1 elements"),
        (attribute({"kind": "strings", "items": ["a"], "dims": [2]}), "1 texts for 2 elements"),
        (attribute({"kind": "weight", "dtype": "float32", "sha256": "x"}), "not a SHA-256"),
        (attribute({"kind": "weight", "dtype": "float32", "sha256": "0" * 64, "dims": [-1]}), "dim -1 is out of range"),
        (attribute({"kind": "splat", "dtype": "uint8", "dims": [1 << 50, 512], "data": b"1"}), "of the dims"),
        (attribute({"kind": "splat", "dtype": "uint8", "dims": [1 << 62, 0], "data": b"1"}), "a literal of the dims"),
        (attribute({"kind": "splat", "dtype": "string", "data": b"1"}), "not written inline"),
        (attribute({"kind": "module", "index": 1}), "held already"),
        (lambda tree: tree["modules"][0]["instructions"].append(holding(1)), "held already"),
        (attribute({"kind": "splat", "dtype": "uint8", "dims": [1] * 65, "data": b"1"}), "65 dims"),
        (attribute({"kind": "formula", "arity": 1, "steps": []}), "0 steps"),
        (attribute({"kind": "formula", "arity": 1, "steps": [{"primitive": "neg", "args": [1]}]}), "reads value 1"),
        (attribute({"kind": "formula", "arity": -1, "steps": [{"primitive": "neg", "args": [1]}]}), "-1 inputs"),
        (attribute(nested(17)), "nest deeper than 16"),
        (attribute(1.5), "damaged"),
        (attribute({"kind": "surprise"}), "damaged"),
        (instruction(novelty=1), "modules[0].instructions[2].novelty' is unknown"),
        (instruction(names=[]), "canonical"),
    ],
)  # fmt: skip
def test_programs_that_break_a_rule(change: Callable[[dict[str, Any]], object], message: str) -> None:
    assert message in refusal(change)


def test_depth_beyond_the_decoder_is_refused() -> None:
    raw = p.PROGRAM.to_msgpack(samples.program())
    inner = b"\x82\xa5items\x91"
    deep = raw.replace(b"\xa4axis\xff", b"\xa4axis" + inner * 100_000 + b"\x01" + b"\xa4kind\xa5tuple" * 100_000)
    assert deep != raw
    with pytest.raises(ArtifactError, match="recursion"):
        read_program(deep, where="program")


def test_modules_may_not_nest_without_bound() -> None:
    def holder(index: int) -> p.ModuleRecord:
        return p.ModuleRecord(
            f"m{index}", (), (p.InstructionRecord("if", 1, attributes={"b": p.ModuleValue(index + 1)}),)
        )

    for count, valid in ((64, True), (65, False)):
        program = p.ProgramRecord((*(holder(index) for index in range(count - 1)), p.ModuleRecord("last")))
        if valid:
            check_program(program, "program")
        else:
            with pytest.raises(ArtifactError, match="modules nest deeper than 64"):
                check_program(program, "program")


def test_weights_of_a_program_are_found_in_order() -> None:
    found = [ref.sha256 for ref in p.literal_refs(samples.program().modules)]
    assert found == [samples.sha256(array) for array in samples.WEIGHTS.values()]

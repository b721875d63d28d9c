"""Every invariant of the IR, broken one at a time, and how little is checked twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from argosy.errors import ArgosyError, InternalError, ModelError
from argosy.ir import (
    Builder,
    Instruction,
    Literal,
    MapType,
    Module,
    OptionalType,
    Parameter,
    Program,
    SequenceType,
    Symbol,
    TensorType,
    Type,
    Value,
    dtype,
    fresh,
    symbol_dim,
)
from argosy.ir.validate import Validator, _Walk, match_types, validate
from argosy.ops.pointwise import Pointwise
from argosy.rewrite.rebuild import map_bodies
from tests.ir.ops import Anything, Bodies, Counted, Steered
from tests.ir.programs import modules

F32 = dtype("float32")
N = symbol_dim(Symbol("N"))


def neg(operand: Value, **changes: Any) -> Instruction:
    """The negative of a value as a good instruction, then changed."""
    b = Builder()
    return dataclasses.replace(b.pointwise("neg", operand).instruction, **changes)


def parameter(name: str, *dims: Any) -> Instruction:
    kind = TensorType(F32, dims)
    return Instruction(Parameter(kind), (), (kind,), (None,), (name,))


X = parameter("x", N)
VALID = neg(X.result())


def module(*instructions: Instruction, parameters: tuple[Instruction, ...] = (X,), **results: Value) -> Module:
    return Module("main", parameters, instructions, tuple(results.values()), tuple(results))


def anything(*dims: Any, operands: tuple[Value | None, ...] = (), **changes: Any) -> Instruction:
    """An instruction with a result of these dims."""
    kind = TensorType(F32, dims)
    return dataclasses.replace(Instruction(Anything(0, (kind,)), operands, (kind,), (None,)), **changes)


def test_good_programs_pass() -> None:
    body = Builder("body")
    p = body.tensor_parameter("p", "float32", ["N"])
    kept = anything(N)
    inner = dataclasses.replace(body.module({"q": p}), instructions=(kept,))
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 4])
    rows, columns = b.add_all(Counted(), x, None)
    b.add_all(Bodies(inner), rows)
    b.add_all(Anything((rows.type, [].__len__(), "é")), b.constant([1, 2]), b.constant(Literal.splat(0, F32, (3, 4))))
    b.constant(np.array([np.nan], np.float32))  # known, and different from itself
    main = b.module({"rows": rows, "columns": columns, "x": x})
    validate(main)
    validate(Program(main))
    assert isinstance(rows.instruction, Instruction)


BROKEN: list[tuple[str, Callable[[], Module], str]] = [
    ("undefined operand", lambda: module(neg(VALID.result())), "is not defined before it"),
    ("later operand", lambda: module(neg(VALID.result()), VALID), "is not defined before it"),
    ("operand index", lambda: module(VALID, neg(VALID.result(), operands=(Value(VALID, 1),))), "is not defined before"),
    (
        "negative index",
        lambda: module(VALID, neg(VALID.result(), operands=(Value(VALID, -1),))),
        "is not defined before",
    ),
    ("twice", lambda: module(VALID, VALID), "it stands twice"),
    ("undefined result", lambda: module(y=VALID.result()), "is not defined in it"),
    ("result index", lambda: module(VALID, y=VALID.result(1)), "is not defined in it"),
    ("late parameter", lambda: module(parameter("z", 1)), "a parameter stands among the instructions"),
    ("early instruction", lambda: module(parameters=(X, anything(1, names=("y",)))), "stands among the parameters"),
    ("parameter without a name", lambda: module(parameters=(parameter("x"), anything(1))), "among the parameters"),
    (
        "equal parameters",
        lambda: module(parameters=(parameter("x", 1), parameter("x", 2))),
        "two parameters are called 'x'",
    ),
    (
        "equal results",
        lambda: dataclasses.replace(module(y=X.result()), results=(X.result(),) * 2, result_names=("y", "y")),
        "two results are called 'y'",
    ),
    ("unnamed results", lambda: dataclasses.replace(module(y=X.result()), result_names=()), "1 results have 0 names"),
    ("types", lambda: module(dataclasses.replace(VALID, types=(TensorType(F32, (3,)),))), "its op infers float32[N]"),
    (
        "parameter type",
        lambda: module(parameters=(dataclasses.replace(X, types=(TensorType(F32, (3,)),)),)),
        "its op infers",
    ),
    ("number of types", lambda: module(dataclasses.replace(VALID, types=(), known=())), "its types are none"),
    (
        "refused operands",
        lambda: module(VALID, dataclasses.replace(VALID, operands=())),
        "a formula of 1 inputs is applied to 0",
    ),
    (
        "op that fails",
        lambda: module(dataclasses.replace(VALID, op=Pointwise(None))),  # type: ignore[arg-type]
        "its op fails on it: AttributeError",
    ),
    (
        "known",
        lambda: module(anything(2, known=(np.array([1, 2], object),))),
        "knows [1, 2] of a result, its op tells nothing",
    ),
    ("counts of known", lambda: module(anything(2, known=())), "0 known values and 0 names for 1 results"),
    ("counts of names", lambda: module(anything(2, names=("a", "b"))), "1 known values and 2 names for 1 results"),
    (
        "numpy attribute",
        lambda: module(anything(op=Anything(np.int64(1)), types=(), known=())),
        "a int64, which files can't",
    ),
    (
        "list attribute",
        lambda: module(anything(op=Anything(((1, [2]),)), types=(), known=())),
        "a list, which files can't",
    ),
    (
        "literal",
        lambda: module(
            anything(op=Anything(Literal(F32, (3,), np.zeros(2, np.float32), is_splat=False)), types=(), known=())
        ),
        "holds 8 bytes instead of 12",
    ),
    (
        "symbol bounds",
        lambda: module(parameters=(X, parameter("z", symbol_dim(Symbol("N", 1))))),
        "two bounds: 0.. and 1..",
    ),
    ("undefined symbol", lambda: module(anything(symbol_dim(Symbol("M")))), "nothing before it defines the symbol M"),
    (
        "undefined symbol in an attribute",
        lambda: module(anything(op=Anything((symbol_dim(Symbol("M")),)), types=(), known=())),
        "nothing before it defines the symbol M",
    ),
]


@pytest.mark.parametrize(("make", "what"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
@pytest.mark.parametrize("error", [InternalError, ModelError])
def test_broken_programs_are_refused(make: Callable[[], Module], what: str, error: type[ArgosyError]) -> None:
    with pytest.raises(error, match=r"^(?s:.*)module main") as caught:
        validate(make(), error)
    assert what in str(caught.value)
    assert type(caught.value) is error


def test_a_refused_op_says_why() -> None:
    b = Builder()
    x, y = b.tensor_parameter("x", "float32", [2]), b.tensor_parameter("y", "int8", [2])
    good = b.pointwise("add", x, x).instruction
    bad = dataclasses.replace(good, operands=(x, y), source="Add (node 3 → 'y')")
    with pytest.raises(
        InternalError, match="Add \\(node 3 → 'y'\\): its op refuses it: add needs arguments of one element"
    ):
        validate(module(bad, parameters=(x.instruction, y.instruction)))


def test_an_instruction_without_a_source_is_named_by_place_and_results() -> None:
    bad = dataclasses.replace(VALID, types=(TensorType(F32, (3,)),), names=("y",))
    with pytest.raises(
        InternalError, match=r"module main: pointwise \(instruction 2 → 'y'\): its types are float32\[3\]"
    ):
        validate(module(VALID, bad))


def test_bodies_are_checked_and_closed() -> None:
    inner = Module("body", (), (neg(X.result()),), (), ())
    outer = Instruction(Bodies(inner), (), (), ())
    with pytest.raises(InternalError, match="module body: pointwise .* is not defined before it"):
        validate(module(outer))


def test_bodies_see_symbols_from_outside_and_keep_theirs() -> None:
    counted = Builder()
    rows = counted.add_all(Counted())[0]
    inside = anything(*rows.tensor.shape)

    def body(*instructions: Instruction) -> Instruction:
        return Instruction(Bodies(Module("body", (), instructions, (), ())), (), (), ())

    validate(module(rows.instruction, body(inside)))
    validate(module(body(rows.instruction, inside)))
    for broken in (module(body(inside), rows.instruction), module(body(rows.instruction), inside)):
        with pytest.raises(InternalError, match="defines the symbol test_counted_rows0"):
            validate(broken)


def test_data_dependent_dims_have_the_bounds_that_the_op_says() -> None:
    b = Builder()
    good = b.add_all(Counted())[0].instruction
    validate(module(good))
    wide = TensorType(dtype("int64"), (symbol_dim(Symbol("rows", 0, 7)), 2))
    bad = dataclasses.replace(good, types=(wide, TensorType(dtype("bool"), (wide.shape[0], symbol_dim(Symbol("c"))))))
    with pytest.raises(InternalError, match="its op infers"):
        validate(module(bad))


def renamed(kind: type[SequenceType | OptionalType] | None, dim: Any) -> Type:
    tensor = TensorType(F32, (dim, 2 * dim))
    return tensor if kind is None else MapType(dtype("int64"), kind(tensor))


@pytest.mark.parametrize("kind", [None, SequenceType, OptionalType])
def test_types_match_up_to_the_names_of_new_symbols(kind: type[SequenceType | OptionalType] | None) -> None:
    inferred = (renamed(kind, fresh("rows")),)
    assert match_types(inferred, (renamed(kind, N),)) == {"?rows": N}
    assert match_types(inferred, (renamed(kind, 3),)) is None
    assert match_types(inferred, (renamed(kind, symbol_dim(Symbol("N", 1))),)) is None
    assert match_types(inferred, (TensorType(F32, None),)) is None
    assert match_types(inferred, ()) is None
    assert match_types((renamed(kind, N),), (renamed(kind, N),)) == {}
    assert match_types((renamed(kind, N),), (renamed(kind, symbol_dim(Symbol("M"))),)) is None


def test_only_what_is_new_is_inferred_again(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred = 0
    infer = Pointwise.infer

    def counting(self: Pointwise, *operands: Value | None) -> tuple[Type, ...]:
        nonlocal inferred
        inferred += 1
        return infer(self, *operands)

    b = Builder()
    y = b.tensor_parameter("x", "float32", ["N"])
    for _ in range(100):
        y = b.pointwise("neg", y)
    before = without_builder(b.module({"y": y}))
    y = before.results[0]
    outer = Instruction(Bodies(dataclasses.replace(before, name="body")), (), y.instruction.types, (None,))
    first = Module("main", (X,), (outer,), (outer.result(),), ("y",))
    changed = dataclasses.replace(before, instructions=(*before.instructions, neg(y)))
    outer_again = dataclasses.replace(outer, op=Bodies(changed))
    second = Module("main", (X,), (outer_again,), (outer_again.result(),), ("y",))

    monkeypatch.setattr(Pointwise, "infer", counting)
    validator = Validator()
    for checked, expected in ((first, 100), (first, 0), (second, 1), (first, 0), (Module("main", (), (), (), ()), 0)):
        inferred = 0
        validator.check(checked)
        assert inferred == expected
    assert not validator._good  # nothing of the programs before is kept alive


def without_builder(original: Module) -> Module:
    """The same module, with nobody's word for the types of its instructions."""
    values: dict[Value, Value] = {}

    def copy(instruction: Instruction) -> Instruction:
        operands = tuple(None if operand is None else values[operand] for operand in instruction.operands)
        made = dataclasses.replace(instruction, op=map_bodies(instruction.op, without_builder), operands=operands)
        values.update(zip(instruction.results, made.results, strict=True))
        return made

    parameters = tuple(map(copy, original.parameters))
    instructions = tuple(map(copy, original.instructions))
    results = tuple(values[value] for value in original.results)
    return Module(original.name, parameters, instructions, results, original.result_names)


@given(modules())
def test_what_a_builder_says_of_its_instructions_is_what_inferring_them_tells(main: Module) -> None:
    trusting, inferring = _Walk(InternalError, {}), _Walk(InternalError, {})
    trusting.module(main)
    inferring.module(without_builder(main))
    assert list(trusting.found.values()) == list(inferring.found.values())


def test_a_builder_is_trusted_for_the_very_instruction_that_it_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N"])
    y = b.pointwise("neg", x)
    other = parameter("x", N)
    moved = Builder()
    (same,) = moved.keep(y.instruction, [moved.adopt(other)])
    with monkeypatch.context() as patch:
        patch.setattr(Pointwise, "infer", None)
        validate(b.module({"y": y}))
        validate(moved.module({"y": same}))  # types and known values of the operand are as before
    for changes in ({"operands": (parameter("x", 4).result(),)}, {"types": (TensorType(F32, (4,)),)}):
        changed = dataclasses.replace(y.instruction, **changes)
        parameters = tuple(operand.instruction for operand in changed.operands if operand)
        with pytest.raises(InternalError, match="its types are"):
            validate(module(changed, parameters=parameters, y=changed.result()))


def test_a_moved_instruction_that_reads_another_constant_is_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    b, moved = Builder(), Builder()
    shape = np.arange(2000)  # too many to be known
    y = b.add(Steered(), b.constant(shape))
    (again,) = moved.keep(y.instruction, [moved.constant(shape + 1)])
    assert again.instruction.defines is None
    with pytest.raises(InternalError, match="its types are"):
        validate(moved.module({"y": again}))


def test_a_refusal_is_not_remembered_as_good() -> None:
    validator = Validator()
    bad = module(dataclasses.replace(VALID, types=(TensorType(F32, (3,)),)))
    for _ in range(2):
        with pytest.raises(InternalError):
            validator.check(bad)
    validator.check(module(VALID))

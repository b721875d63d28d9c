"""Plan records: both encodings round-trip, and each rule of a valid plan is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.artifact import plan as p
from argosy.artifact.plan_check import check_plan, read_plan
from argosy.artifact.program import SymbolRecord
from argosy.errors import ArtifactError
from tests.artifact import samples

# ------------------------------------------------------------------------------------ round trips


@st.composite
def blocks(draw: st.DrawFn, written: list[int], fresh: int, depth: int) -> tuple[tuple[p.Block, ...], list[int], int]:
    """Blocks that are valid where `written` buffers are; what is written after them, and the next unused buffer."""
    result: list[p.Block] = []
    known = list(written)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["straight", "if", "loop"] if depth < 3 else ["straight"]))
        if kind == "straight":
            steps: list[p.Step] = []
            for _ in range(draw(st.integers(0, 3))):
                operands = draw(st.lists(st.one_of(st.none(), st.sampled_from(known)), max_size=3))
                steps.append(p.EvaluateStep(draw(st.text(min_size=1, max_size=4)), 1, (fresh,), tuple(operands)))
                steps.append(p.CopyStep(draw(st.sampled_from(known)), fresh + 1))
                steps.append(p.ShapeStep("N", fresh, draw(st.one_of(st.none(), st.integers(0, 7)))))
                known += [fresh, fresh + 1]
                fresh += 2
            result.append(p.StraightBlock(tuple(steps), draw(st.booleans())))
        elif kind == "if":
            then, after_then, fresh = draw(blocks(known, fresh, depth + 1))
            otherwise, after_else, fresh = draw(blocks(known, fresh, depth + 1))
            result.append(p.IfBlock(draw(st.sampled_from(known)), then, otherwise))
            known += sorted((set(after_then) & set(after_else)) - set(known))
        else:
            carried = p.CarriedRecord(draw(st.sampled_from(known)), fresh, fresh, fresh + 1)
            iteration, final = fresh + 2, fresh + 1
            body, _, fresh = draw(blocks([*known, carried.current, iteration], fresh + 3, depth + 1))
            result.append(p.LoopBlock(body, draw(st.sampled_from(known)), iteration=iteration, carried=(carried,)))
            known.append(final)
    return tuple(result), known, fresh


@st.composite
def plans(draw: st.DrawFn) -> p.PlanRecord:
    body, written, count = draw(blocks([0], 1, 0))
    outputs = draw(st.lists(st.sampled_from(written), max_size=3))
    return p.PlanRecord(
        (p.BindingRecord("x", 0),),
        tuple(p.BindingRecord(f"y{number}", buffer) for number, buffer in enumerate(outputs)),
        (p.BufferRecord("input", "float32[N]"), *(p.BufferRecord("value", "float32[N]") for _ in range(count - 1))),
        body,
        (SymbolRecord("N"),),
        (p.InputDim("N", 0, 0),),
    )


@settings(max_examples=150, deadline=None)
@given(plans())
def test_valid_plans_round_trip_in_both_encodings(plan: p.PlanRecord) -> None:
    raw = p.PLAN.to_msgpack(plan)
    assert read_plan(raw, where="plan") == plan
    assert p.PLAN.from_json(p.PLAN.to_json(plan), where="plan") == plan


def test_sample_of_every_record_round_trips() -> None:
    plan = samples.plan()
    check_plan(plan, "plan")
    assert p.PLAN.from_msgpack(p.PLAN.to_msgpack(plan), where="plan") == plan
    assert p.PLAN.from_json(p.PLAN.to_json(plan), where="plan") == plan


def test_weights_of_a_plan_are_found_everywhere() -> None:
    weight = samples.ref(samples.WEIGHTS["conv.weight"])
    assert list(p.plan_refs(samples.plan())) == [weight, weight]  # the buffer's and the evaluate step's


# ------------------------------------------------------------------------------------------ rules

STEPS = {"evaluate": 0, "copy": 1, "shape": 2, "launch": 3, "call": 4}
Change = Callable[[dict[str, Any]], object]


def refusal(change: Change) -> str:
    tree = msgspec.msgpack.decode(p.PLAN.to_msgpack(samples.plan()))
    change(tree)
    with pytest.raises(ArtifactError) as caught:
        read_plan(msgspec.msgpack.encode(tree, order="sorted"), where="plan.msgpack")
    assert str(caught.value).startswith("plan.msgpack")
    return str(caught.value)


def step(kind: str, **fields: object) -> Change:
    return lambda tree: tree["body"][0]["steps"][STEPS[kind]].update(fields)


def buffer(number: int, **fields: object) -> Change:
    return lambda tree: tree["buffers"][number].update(fields)


def block(number: int, **fields: object) -> Change:
    return lambda tree: tree["body"][number].update(fields)


def argument(number: int, **fields: object) -> Change:
    return lambda tree: tree["body"][0]["steps"][3]["arguments"][number].update(fields)


def endless(tree: dict[str, Any]) -> None:
    del tree["body"][2]["trip_count"], tree["body"][2]["next_condition"]


def deep(tree: dict[str, Any]) -> None:
    for _ in range(66):
        tree["body"] = [{"kind": "if", "condition": 1, "then": tree["body"], "otherwise": []}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (step("evaluate", operands=[99]), "body, block 0, step 0 (pointwise): a buffer is number 99 of 16"),
        (step("evaluate", operands=[7]), "reads buffer 7, which is not written on every path"),
        (step("evaluate", results=[0]), "writes buffer 0, which is of kind input"),
        (step("evaluate", results=[2]), "of kind weight"),
        (step("evaluate", results=[3]), "of kind prepared"),
        (step("evaluate", attributes={"body": {"kind": "module", "index": 1}}), "a module is number 1 of 1"),
        (lambda tree: tree["body"][0]["steps"].append(tree["body"][0]["steps"][0]), "module 0, which is held already"),
        (step("copy", origin=-1), "number -1 of 16"),
        (step("shape", symbol="Q"), "symbol 'Q' is not declared"),
        (step("shape", axis=64), "its axis is number 64"),
        (step("shape", element=-1), "its element is -1"),
        (step("launch", code=2), "its code object is number 2 of 2"),
        (step("launch", code=1), "of the form elf"),
        (step("call", code=0), "of the form hsaco"),
        (step("launch", entry=""), "name of its function is empty"),
        (step("launch", block=[0, 1, 1]), "a block or cluster dim"),
        (step("launch", grid=["", 1, 1]), "its grid is empty"),
        (step("launch", stream=2), "its stream is number 2"),
        (step("launch", waits=[2]), "an event is number 2"),
        (step("launch", signal=2), "an event is number 2"),
        (step("launch", shared=-1), "its shared memory is -1"),
        (step("launch", parameter_bytes=190), "argument 3: it lies at 64 of 190 bytes"),
        (step("launch", reads=[3]), "points to buffer 4, which the step neither reads nor writes"),
        (step("call", chunks=-1), "number of chunks is -1"),
        (step("call", operations={"float31": 2}), "unknown element type"),
        (step("call", operations={"float32": -2}), "number of operations is -2"),
        (step("call", parts=[1]), "it tells parts of 1 buffers, not of each"),
        (step("launch", parts=[-1, None, None]), "its part of a buffer is -1"),
        (argument(1, offset=7), "argument 1: it lies at 7"),
        (argument(1, dtype="int31"), "unknown element type"),
        (argument(3, box=[1]), "a tensor map of 2 dims"),
        (argument(4, size=0), "its size is number -1"),
        (buffer(4, arena=2), "its arena is number 2 of 2"),
        (lambda tree: tree["buffers"][4].pop("arena"), "buffer 4: a planned buffer lies in an arena"),
        (buffer(15, shift=57), "it ends at 65, its base at 64"),
        (buffer(15, base=15), "its base is number 15 of 15"),
        (buffer(15, base=7), "its base is buffer 7, a Python object"),
        (lambda tree: tree["buffers"][15].pop("base"), "buffer 15: a view has a base"),
        (step("call", writes=[5, 7]), "it takes buffer 7, a Python object"),
        (
            lambda tree: (buffer(15, base=2)(tree), step("call", writes=[5, 15])(tree)),
            "buffer 15, which is of kind weight",
        ),
        (step("call", reads=[15], arguments=[], writes=[]), "reads buffer 15, which is not written"),
        (buffer(7, type=""), "its type is empty"),
        (buffer(15, order=[1, 1]), "its order [1, 1] does not name each axis once"),
        (buffer(7, kind="weight"), "a weight has a literal"),
        (buffer(7, kind="input"), "input buffers are not those of the inputs"),
        (buffer(0, kind="value"), "its buffer 0 is not an input buffer"),
        (lambda tree: tree["inputs"][1].update(buffer=0), "input buffers are not those of the inputs"),
        (lambda tree: tree["inputs"][1].update(name="x"), "another input is called 'x'"),
        (lambda tree: tree["outputs"][0].update(buffer=10), "outputs: it reads buffer 10"),
        (lambda tree: tree["arenas"][0].update(alignment=24), "alignment is 24"),
        (lambda tree: tree["code"][0].update(path="code/../x"), "not the name of an entry in code/"),
        (lambda tree: tree["code"][0].update(assembly="code/x"), "not the name of an entry in asm/"),
        (lambda tree: tree["shapes"][0].update(input=2), "shape program, entry 0: its input is number 2"),
        (lambda tree: tree["shapes"][1].update(symbol="N"), "bound twice"),
        (lambda tree: tree["shapes"][1].update(symbol="Q"), "not declared"),
        (lambda tree: tree.pop("prepare"), "no prepare module makes buffer 3"),
        (lambda tree: tree["prepare"].append(tree["prepare"][0]), "of kind prepared"),
        (lambda tree: tree["prepare"][0].update(results=[]), "does not write its results"),
        (lambda tree: tree["prepare"][0].update(results=[2]), "a result is not a prepared buffer"),
        (lambda tree: tree["prepare"][0]["body"][0]["steps"][0].update(operands=[0]), "reads buffer 0"),
        (block(1, condition=10), "block 1 (if): it reads buffer 10"),
        (block(1, otherwise=[]), "reads buffer 8"),
        (endless, "neither a trip count nor a condition"),
        (lambda tree: tree["body"][2].pop("condition"), "neither a trip count nor a condition"),
        (block(2, next_condition=4), ""),
        (block(2, next_condition=14), "reads buffer 14"),
        (lambda tree: tree["body"][2]["carried"][0].update(final=0), "of kind input"),
        (lambda tree: tree["body"][2]["collected"][0].update(axis=64), "axis of a collected value"),
        (deep, "blocks nest deeper than 64"),
    ],
)
def test_plans_that_break_a_rule(change: Change, message: str) -> None:
    if message:
        assert message in refusal(change)
    else:  # a change that keeps the plan valid: the rules refuse no more than they should
        tree = msgspec.msgpack.decode(p.PLAN.to_msgpack(samples.plan()))
        change(tree)
        read_plan(msgspec.msgpack.encode(tree, order="sorted"), where="plan.msgpack")


def test_many_branches_cost_linear_time() -> None:
    """100,000 buffers and 20,000 branches: copying the set of written buffers at each would take minutes."""
    count = 100_000
    wide = p.StraightBlock(tuple(p.CopyStep(0, number) for number in range(1, count)))
    branches = tuple(p.IfBlock(0, (), ()) for _ in range(20_000))
    buffers = (p.BufferRecord("input", "bool[]"), *(p.BufferRecord("value", "bool[]") for _ in range(count - 1)))
    check_plan(p.PlanRecord((p.BindingRecord("x", 0),), (), buffers, (wide, *branches)), "plan")

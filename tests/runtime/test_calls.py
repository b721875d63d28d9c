"""Plans that call kernels: static and symbolic sizes, views, scratch, faults, data-dependent sizes, control flow."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest

from argosy.artifact.plan import (
    BufferRecord,
    CarriedRecord,
    CollectedRecord,
    CopyStep,
    IfBlock,
    InputDim,
    LoopBlock,
    PrepareRecord,
    ShapeStep,
)
from argosy.artifact.program import InlineLiteral, LiteralRef, SplatLiteral, SymbolRecord
from argosy.cli.plan_text import plan_lines
from argosy.errors import ArtifactError, UsageError
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.op import Env
from argosy.ops.pointwise import Pointwise
from argosy.ops.view import Unsqueeze
from argosy.runtime.planned_memory import PlannedMemory
from tests.runtime.kernels import call, evaluate, executor, plan, planned, run, straight

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def test_calls_over_fixed_sizes() -> None:
    record = plan(
        {"a": 0, "b": 1},
        {"y": 3},
        [BufferRecord("input", "float32[3, 5]"), BufferRecord("input", "float32[3, 5]"), planned("float32[3, 5]"),
         planned("float32[3, 5]")],
        straight(call("add", (0, 1), (2,), (15,), chunks=4), call("scale", (2,), (3,), (15, 3), chunks=2, scratch=60)),
    )  # fmt: skip
    made = executor(record)
    a, b = floats(3, 5), floats(3, 5)
    (first,) = run(made, a, b)
    np.testing.assert_array_equal(first, (a + b) * np.float32(3))
    (second,) = run(made, np.asfortranarray(a), a)
    np.testing.assert_array_equal(second, (a + a) * np.float32(3))
    assert not np.may_share_memory(first, second)


def symbolic() -> Any:
    return plan(
        {"a": 0, "b": 1},
        {"y": 3},
        [BufferRecord("input", "float32[N, 5]"), BufferRecord("input", "float32[N, 5]"), planned("float32[N, 5]"),
         planned("float32[N, 5]", size="20*N + 128")],
        straight(
            call("add", (0, 1), (2,), ("5*N",), chunks="max(1, floordiv(N, 2))"),
            call("scale", (2,), (3,), ("5*N", 2), scratch=20000),
        ),
        symbols=(SymbolRecord("N", 1, 512),),
        shapes=(InputDim("N", 0, 0),),
    )  # fmt: skip


def test_one_plan_runs_every_size() -> None:
    made = executor(symbolic())
    for n in (1, 7, 300, 7, 2):
        a, b = floats(n, 5), floats(n, 5)
        np.testing.assert_array_equal(run(made, a, b)[0], (a + b) * np.float32(2))


def test_inputs_whose_sizes_contradict_each_other_are_refused() -> None:
    record = plan(
        {"a": 0, "b": 1}, {"y": 2},
        [BufferRecord("input", "float32[N]"), BufferRecord("input", "float32[2*N]"), planned("float32[N]")],
        straight(call("add", (0, 1), (2,), ("N",))),
        symbols=(SymbolRecord("N", 1, 512),),
        shapes=(InputDim("N", 0, 0),),
    )  # fmt: skip
    made = executor(record)
    a, b = floats(3), floats(6)
    np.testing.assert_array_equal(run(made, a, b)[0], a + b[:3])
    with pytest.raises(UsageError, match=r"input 'b': expected the shape \[6\] .* found \[1\]"):
        run(made, a, floats(1))


def test_inputs_in_any_order_of_bytes_and_strides() -> None:
    made = executor(symbolic())
    a, b = floats(8, 5), floats(4, 10)[:, ::2].repeat(2, axis=0)
    found = run(made, a.astype(">f4"), b[::-1])[0]
    np.testing.assert_array_equal(found, (a + b[::-1]) * np.float32(2))


def test_concat_split_and_in_place_are_views() -> None:
    record = plan(
        {"a": 0},
        {"whole": 1, "tail": 5},
        [
            BufferRecord("input", "float32[N]"),
            planned("float32[2*N]"),
            BufferRecord("view", "float32[N]", base=1),
            BufferRecord("view", "float32[N]", base=1, shift="4*N"),
            BufferRecord("view", "float32[N]", base=3),
            BufferRecord("view", "float32[1]", base=4, shift="4*N - 4"),
        ],
        straight(
            call("scale", (0,), (2,), ("N", 2), scratch=4096),
            call("add", (0, 2), (3,), ("N",)),
            call("scale", (3,), (4,), ("N", 10), scratch=4096),  # in place
        ),
        symbols=(SymbolRecord("N", 1, 512),),
        shapes=(InputDim("N", 0, 0),),
    )
    a = floats(9)
    whole, tail = run(executor(record), a)
    np.testing.assert_allclose(whole, np.concatenate([2 * a, 30 * a]), rtol=1e-6)
    np.testing.assert_array_equal(tail, whole[-1:])


def test_weights_and_prepared_buffers() -> None:
    weight = floats(1000)
    literal = Literal.of(weight)
    ref = LiteralRef(literal.digest, "float32", (1000,))
    record = plan(
        {"x": 0},
        {"y": 6, "doubled": 4, "kept": 7},
        [
            BufferRecord("input", "float32[1000]"),
            BufferRecord("weight", "float32[1000]", ref),
            BufferRecord("weight", "float32[1000]", SplatLiteral("float32", np.float32(1.5).tobytes(), (1000,))),
            planned("float32[1000]"),
            BufferRecord("prepared", "float32[1000]"),
            BufferRecord("prepared", "float32[1000]"),
            planned("float32[1000]"),
            BufferRecord("prepared", "float32[1000]"),
        ],
        straight(call("add", (0, 5), (6,), (1000,))),
        prepare=(
            PrepareRecord(
                "weights", (4, 5, 7),
                straight(
                    call("scale", (1,), (4,), (1000, 2), scratch=4000),
                    call("scale", (4,), (3,), (1000, 2), scratch=4000),
                    call("add", (3, 2), (5,), (1000,)),
                    CopyStep(5, 7),
                ),
            ),
        ),
    )  # fmt: skip
    made = executor(record, {literal.digest: literal})
    x = floats(1000)
    for _ in range(2):
        y, doubled, kept = run(made, x)
        np.testing.assert_array_equal(doubled, 2 * weight)
        np.testing.assert_array_equal(y, x + (4 * weight + np.float32(1.5)))
        np.testing.assert_array_equal(kept, 4 * weight + np.float32(1.5))
        assert not doubled.flags.writeable
        y[:] = 0


def test_evaluate_steps_see_the_same_memory() -> None:
    record = plan(
        {"a": 0},
        {"y": 4, "square": 2, "seen": 3},
        [BufferRecord("input", "float32[N]"), planned("float32[N]"), planned("float32[N]"),
         BufferRecord("value", "float32[N, 1]"), planned("float32[N]")],
        straight(
            call("scale", (0,), (1,), ("N", 2), scratch=4096),
            evaluate(Pointwise(Formula.of("mul")), (1, 1), (2,)),
            evaluate(Unsqueeze((1,)), (1,), (3,)),
            call("add", (0, 2), (4,), ("N",)),
            call("scale", (0,), (1,), ("N", 7), scratch=4096),
        ),
        symbols=(SymbolRecord("N", 1, 512),),
        shapes=(InputDim("N", 0, 0),),
    )  # fmt: skip
    a = floats(33)
    y, square, seen = run(executor(record), a)
    np.testing.assert_allclose(square, 4 * a * a, rtol=1e-6)
    np.testing.assert_allclose(y, a + 4 * a * a, rtol=1e-5)
    np.testing.assert_allclose(seen, 2 * a[:, None], rtol=1e-6)


def compress() -> Any:
    """y = 2 * the positive elements: one kernel counts, the next allocates nothing of its own."""
    return plan(
        {"x": 0},
        {"y": 3, "rows": 4},
        [
            BufferRecord("input", "float32[N]"),
            planned("int64[]"),
            BufferRecord("pooled", "float32[C]", size="4*C + 64"),
            BufferRecord("pooled", "float32[C]"),
            BufferRecord("view", "float32[C, 1]", base=3),
        ],
        straight(
            call("count_positive", (0,), (1,), ("N",)),
            ShapeStep("C", 1),
            call("positive", (0,), (2,), ("N",)),
            call("scale", (2,), (3,), ("C", 2), chunks="C", scratch=4096),
        ),
        symbols=(SymbolRecord("N", 1, 512), SymbolRecord("C")),
        shapes=(InputDim("N", 0, 0),),
    )


def test_sizes_that_depend_on_data() -> None:
    made = executor(compress())
    for n in (5, 400, 17):
        x = floats(n)
        y, rows = run(made, x)
        np.testing.assert_array_equal(y, 2 * x[x > 0])
        assert rows.shape == (len(y), 1)
    (y, _) = run(made, -np.ones(4, np.float32))
    assert y.shape == (0,)


def test_planned_buffers_of_unknown_size_are_refused() -> None:
    record = compress()
    buffers = (*record.buffers[:2], planned("float32[C]"), *record.buffers[3:])
    with pytest.raises(ArtifactError, match="buffer 2 is planned, but its size depends on data"):
        executor(msgspec.structs.replace(record, buffers=buffers))


def test_a_bounded_buffer_may_hold_a_size_that_depends_on_data() -> None:
    record = compress()
    buffers = (*record.buffers[:2], planned("float32[C]", size="4*N"), *record.buffers[3:])
    made = executor(msgspec.structs.replace(record, buffers=buffers))
    x = floats(100)
    np.testing.assert_array_equal(run(made, x)[0], 2 * x[x > 0])


def test_a_fault_names_the_step_and_leaves_the_session_usable() -> None:
    record = plan(
        {"x": 0, "i": 1},
        {"y": 2},
        [BufferRecord("input", "float32[8]"), BufferRecord("input", "int64[6]"), planned("float32[6]")],
        straight(
            call("gather", (0, 1), (2,), (8, 6), chunks=3, source="Gather (node 7)"),
            call("scale", (2,), (2,), (6, 2), scratch=64),
        ),
    )
    made = executor(record)
    x = floats(8)
    with pytest.raises(UsageError, match="Gather .node 7.: the index 9 is out of range"):
        run(made, x, np.array([0, 1, 9, 3, 10, 5]))
    np.testing.assert_array_equal(run(made, x, np.arange(6))[0], 2 * x[:6])


def test_branches_over_planned_buffers() -> None:
    record = plan(
        {"x": 0, "flag": 1},
        {"y": 2},
        [BufferRecord("input", "float32[6]"), BufferRecord("input", "bool[]"), planned("float32[6]"),
         planned("float32[6]")],
        (
            IfBlock(
                1,
                straight(call("scale", (0,), (2,), (6, 2), scratch=64)),
                straight(
                    call("scale", (0,), (3,), (6, 5), scratch=64), call("add", (3, 0), (2,), (6,))
                ),
            ),
        ),
    )  # fmt: skip
    made = executor(record)
    x = floats(6)
    np.testing.assert_array_equal(run(made, x, np.array(True))[0], 2 * x)
    np.testing.assert_array_equal(run(made, x, np.array(False))[0], 5 * x + x)


@pytest.mark.parametrize("kind", ["planned", "value"])
def test_loops_over_planned_buffers(kind: str) -> None:
    """a, b = a + b, a for n rounds (so that the carried values swap), collecting a after each."""
    held = planned if kind == "planned" else lambda text: BufferRecord("value", text)
    record = plan(
        {"a": 0, "b": 1, "n": 2},
        {"a_out": 6, "b_out": 7, "all": 8, "reversed": 9, "sum": 10},
        [
            BufferRecord("input", "float32[4]"),
            BufferRecord("input", "float32[4]"),
            BufferRecord("input", "int64[]"),
            planned("float32[4]"),  # current a
            planned("float32[4]"),  # current b
            planned("float32[4]"),  # next a
            planned("float32[4]"),
            held("float32[4]"),
            BufferRecord("pooled", "float32[R, 4]"),
            BufferRecord("value", "float32[R, 4]"),
            planned("float32[4]"),
        ],
        (
            LoopBlock(
                straight(call("add", (3, 4), (5,), (4,))),
                trip_count=2,
                carried=(CarriedRecord(0, 3, 5, 6), CarriedRecord(1, 4, 3, 7)),
                collected=(CollectedRecord(5, 8), CollectedRecord(5, 9, 0, reverse=True)),
            ),
            *straight(ShapeStep("R", 8, 0), call("add", (0, 1), (10,), (4,))),
        ),
        symbols=(SymbolRecord("R"),),
    )
    made = executor(record)
    for rounds in (3, 1, 6):
        a, b = floats(4), floats(4)
        found = run(made, a, b, np.array(rounds))
        x, y, every = a, b, []
        for _ in range(rounds):
            x, y = x + y, x
            every.append(x)
        for value, wanted in zip(found, (x, y, np.stack(every), np.stack(every[::-1]), a + b), strict=True):
            np.testing.assert_array_equal(value, wanted)


def test_a_loop_that_never_runs() -> None:
    record = plan(
        {"a": 0, "go": 1},
        {"out": 4, "all": 5},
        [
            BufferRecord("input", "float32[4]"),
            BufferRecord("input", "bool[]"),
            planned("float32[4]"),
            planned("float32[4]"),
            planned("float32[4]"),
            BufferRecord("pooled", "float32[R, 4]"),
        ],
        (
            LoopBlock(
                straight(call("add", (2, 0), (3,), (4,))),
                condition=1,
                next_condition=1,
                carried=(CarriedRecord(0, 2, 3, 4),),
                collected=(CollectedRecord(3, 5),),
            ),
        ),
        symbols=(SymbolRecord("R"),),
    )
    a = floats(4)
    out, every = run(executor(record), a, np.array(False))
    np.testing.assert_array_equal(out, a)
    assert every.shape == (0, 4)


def test_packed_elements_are_packed_for_kernels_only() -> None:
    record = plan(
        {"x": 0},
        {"same": 1, "weight": 2},
        [BufferRecord("input", "int4[5]"), planned("int4[5]"),
         BufferRecord("weight", "int4[3]", InlineLiteral("int4", b"\x21\x0f", (3,)))],
        straight(CopyStep(0, 1)),
    )  # fmt: skip
    x = np.array([-8, 7, 0, 1, -1], ml_dtypes.int4)
    same, weight = run(executor(record), x)
    assert same.dtype == x.dtype
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(weight, np.array([1, 2, -1], ml_dtypes.int4))


def test_runs_side_by_side_have_memory_of_their_own() -> None:
    made = executor(symbolic())
    inputs = [(floats(1 + 19 * (index % 4), 5), floats(1 + 19 * (index % 4), 5)) for index in range(16)]
    wanted = [run(made, *pair)[0].tobytes() for pair in inputs]
    faults: list[int] = []

    def work(index: int) -> None:
        faults.extend(index for _ in range(200) if run(made, *inputs[index])[0].tobytes() != wanted[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_memory_is_known_before_a_run() -> None:
    memory = PlannedMemory(symbolic(), "plan")
    assert memory.symbols == ("N",)
    placed = memory.placement({"N": 64})
    made = executor(symbolic())
    run(made, floats(64, 5), floats(64, 5))
    layout = made._body.layout({"N": 64})
    assert (placed.size, placed.live) == (layout.arena, layout.live)
    assert placed.live <= placed.size <= 1.1 * placed.live


def test_steps_are_printed_with_their_arena() -> None:
    record = plan(
        {"a": 0}, {"y": 1}, [BufferRecord("input", "float32[1000]"), planned("float32[1000]")],
        straight(call("scale", (0,), (1,), (1000, 2), scratch=4000)),
    )  # fmt: skip
    lines = list(plan_lines(record))
    assert "arena host, aligned to 64: 8064 bytes, of which at most 8000 are live at once" in lines
    assert any("its size depends on N" in line for line in plan_lines(symbolic()))


def test_watching_a_run_tells_each_kernel_and_what_it_wrote() -> None:
    a, b = floats(7, 5), floats(7, 5)
    told: list[tuple[str, Any]] = []
    made = executor(symbolic())
    wanted = run(made, a, b)[0]
    (found,) = made.run([a, b], Env(), lambda instruction, results: told.append((instruction.source, tuple(results))))
    np.testing.assert_array_equal(found, wanted)
    assert [source for source, _ in told] == ["add", "scale"]
    np.testing.assert_array_equal(told[0][1][0], a + b)
    assert told[1][1] == (None,)  # its buffer is larger than the tensor
    seen: list[str] = []
    x = floats(40)
    compressing = executor(compress())
    (y, _) = compressing.run([x], Env(), lambda instruction, _: seen.append(instruction.source))
    np.testing.assert_array_equal(y, 2 * x[x > 0])
    assert seen == ["count_positive", "positive", "scale"]

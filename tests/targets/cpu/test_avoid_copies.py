"""Parts are written and read where they lie in the whole: which buffers are views, and that the results stay right."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import argosy
from argosy.artifact.plan import CallStep, PlanRecord, steps_in
from argosy.cli.plan_text import plan_lines
from argosy.ir import Builder, Module, Program, Symbol, TensorType, Value, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32
from argosy.ops.control import If
from argosy.ops.convolution import Conv
from argosy.ops.joining import Concat, Split
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce
from argosy.ops.scan import Cumulative
from argosy.ops.slicing import Slice
from argosy.ops.view import Broadcast, Reshape
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

N = symbol_dim(Symbol("n"))
ROWS = 4
LINE = 6 * 4
"""Bytes of a row of six float32."""


def plan_of(module: Module) -> PlanRecord:
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    return artifact.plan(artifact.variants[0].key)


def copies(plan: PlanRecord) -> tuple[int, ...]:
    """How many calls copy operands to give them a halo or to join them all, join one of them, or copy pieces."""
    entries = [step.entry for step in steps_in(plan.body) if isinstance(step, CallStep)]
    names = (("concat", "change_halo"), ("copy_bytes",), ("split", "slice"))
    return tuple(sum(entry.startswith(of) for entry in entries) for of in names)


def shifts(plan: PlanRecord) -> list[int | str]:
    return [buffer.shift for buffer in plan.buffers if buffer.kind == "view"]


def own(build: Builder, value: Value, *, reverse: bool = False) -> Value:
    """Something that a kernel of its own makes of a value."""
    return build.add(Cumulative("sum", reverse=reverse), value, build.constant(np.array(value.rank - 1, np.int64)))


def three(build: Builder, x: Value) -> list[Value]:
    a = own(build, x)
    return [a, own(build, a, reverse=True), build.pointwise(lambda v: v * 2.0, own(build, x, reverse=True))]


def join(build: Builder, *values: Value, axis: int = 0) -> Value:
    return build.add(Concat(axis), *values)


Case = Callable[[Builder, Value], Sequence[Value]]


def _pair(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [own(build, join(build, a, b))]


def _reversed(build: Builder, x: Value) -> Sequence[Value]:
    """What is made last comes first: what a kernel writes beyond its end would be seen."""
    a, b, c = three(build, x)
    return [own(build, join(build, c, b, a))]


def _inputs_too(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [own(build, join(build, x, a, x, b))]


def _twice(build: Builder, x: Value) -> Sequence[Value]:
    a = own(build, x)
    return [own(build, join(build, a, a))]


def _chain(build: Builder, x: Value) -> Sequence[Value]:
    a, b, c = three(build, x)
    both = join(build, a, b)
    return [own(build, both), own(build, join(build, both, c))]


def _prefixes(build: Builder, x: Value) -> Sequence[Value]:
    a, b, c = three(build, x)
    return [own(build, join(build, *parts)) for parts in ((a, b), (a, b, c), (a, b, c, own(build, c)))]


def _copied_prefix(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [own(build, join(build, *parts)) for parts in ((x, a), (x, a, b))]


def _middle(build: Builder, x: Value) -> Sequence[Value]:
    a, b, c = three(build, x)
    return [own(build, join(build, *parts)) for parts in ((a, b, c), (b, c))]


def _two_orders(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [own(build, join(build, a, b)), own(build, join(build, b, a))]


def _results(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [a, b, join(build, a, b)]


def _reshaped(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    flat = [build.add(Reshape((-1, 1)), value) for value in (a, b)]
    return [own(build, join(build, *flat))]


def _inner_axis(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    return [own(build, join(build, a, b, axis=1))]


def _unit_axes(build: Builder, x: Value) -> Sequence[Value]:
    a, b, _ = three(build, x)
    images = [own(build, build.add(Reshape((1, 1, -1, 6)), value)) for value in (a, b)]
    return [own(build, join(build, *images, axis=2))]


def _pieces(build: Builder, x: Value) -> Sequence[Value]:
    a = own(build, x)
    first, more = (build.add(Slice((start,), (stop,), (0,)), a) for start, stop in ((0, 1), (0, 3)))
    return [own(build, first), more, own(build, a)]


def _columns(build: Builder, x: Value) -> Sequence[Value]:
    return [own(build, build.add(Slice((1,), (5,), (1,)), own(build, x)))]


def _steps_of_two(build: Builder, x: Value) -> Sequence[Value]:
    return [own(build, build.add(Slice((0,), (4,), (0,), (2,)), own(build, x)))]


def _split(build: Builder, x: Value) -> Sequence[Value]:
    """Read by what joins no kernel, and put together again in another order, and in the same."""
    whole = own(build, join(build, own(build, x), own(build, x, reverse=True)))
    a, b = build.add_all(Split(0, 2), whole)
    return [own(build, join(build, b, a)), own(build, join(build, a, b)), b]


CASES: list[tuple[Case, tuple[int, int, int], list[int]]] = [
    (_pair, (0, 0, 0), [0, ROWS]),
    (_reversed, (0, 0, 0), [0, ROWS, 2 * ROWS]),
    (_inputs_too, (0, 2, 0), [0, ROWS, 2 * ROWS, 3 * ROWS]),
    (_twice, (0, 1, 0), [0, ROWS]),
    (_chain, (0, 0, 0), [0, 0, ROWS, 2 * ROWS]),
    (_prefixes, (0, 0, 0), [0, 0, 0, ROWS, 2 * ROWS, 3 * ROWS]),
    (_copied_prefix, (0, 1, 0), [0, 0, ROWS, 2 * ROWS]),
    (_middle, (0, 0, 0), [0, ROWS, ROWS, 2 * ROWS]),
    (_two_orders, (1, 0, 0), [0, ROWS]),
    (_results, (0, 0, 0), [0, ROWS]),
    (_reshaped, (0, 0, 0), [0, 0, 0, ROWS]),
    (_inner_axis, (1, 0, 0), []),
    (_pieces, (0, 0, 0), [0, 0]),
    (_columns, (0, 0, 1), []),
    (_steps_of_two, (0, 0, 1), []),
    (_split, (1, 0, 0), [0, ROWS, 0, ROWS]),
    (_unit_axes, (0, 0, 0), [0, 0, 0, ROWS]),
]


@pytest.mark.parametrize(("case", "calls", "rows"), CASES, ids=[case[0].__name__[1:] for case in CASES])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_row_major(case: Case, calls: tuple[int, int, int], rows: list[int], *, symbolic: bool) -> None:
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (N if symbolic else ROWS, 6)))
    module = build.module({f"y{number}": value for number, value in enumerate(case(build, x))})
    plan = plan_of(module)
    assert copies(plan) == calls
    found = shifts(plan)
    for row in rows:
        found.remove(f"{row * LINE // ROWS}*n" if symbolic and row else row * LINE)
    assert set(found) <= {0}, "the rest are results in place of an operand"
    data = np.random.default_rng(0).standard_normal((ROWS, 6)).astype(np.float32)
    sizes = (ROWS, 1, 0, 5) if symbolic else (ROWS,)
    check(module, [([np.resize(data, (size, 6))], {}) for size in sizes])


def conv(build: Builder, x: Value, channels: int, size: int = 1) -> Value:
    """A convolution that keeps the size of the image, and of its numbers."""
    weight = np.random.default_rng(channels + size).standard_normal((channels, x.tensor.shape[1], size, size))
    weight = (weight / np.sqrt(weight[0].size)).astype(np.float32)
    half = size // 2
    return build.add(Conv((1, 1), (half, half, half, half), (1, 1)), x, build.constant(weight))


def fire(build: Builder, x: Value) -> Sequence[Value]:
    """Two convolutions of one image, joined (SqueezeNet)."""
    return [conv(build, join(build, conv(build, x, 32), conv(build, x, 20, 3), axis=1), 16)]


def dense(build: Builder, x: Value) -> Sequence[Value]:
    """Each layer reads all that came before (DenseNet)."""
    value = conv(build, x, 32)
    for _ in range(3):
        value = join(build, value, conv(build, build.pointwise(lambda v: v.max(0.0), value), 16, 3), axis=1)
    return [conv(build, value, 8)]


def uneven(build: Builder, x: Value) -> Sequence[Value]:
    """Channels that are no whole blocks but in the last operand: they are joined in row-major order."""
    return [conv(build, join(build, conv(build, x, 20), conv(build, x, 32), axis=1), 16)]


def halves(build: Builder, x: Value) -> Sequence[Value]:
    """Half of the channels go on, all are joined again (CSPNet)."""
    whole = conv(build, x, 32)
    a, b = build.add_all(Split(1, 2), build.pointwise(lambda v: v.max(0.0), whole))
    c = conv(build, b, 16, 3)
    return [conv(build, join(build, a, b, c, conv(build, c, 16, 3), axis=1), 16, 3)]


def halo(build: Builder, x: Value) -> Sequence[Value]:
    """A whole that a window slides over, and so what it is made of; an operand that another window slides over."""
    a, b = conv(build, x, 16), conv(build, x, 32)
    whole = join(build, a, b, axis=1)
    return [conv(build, whole, 16, 3), conv(build, a, 16, 5)]


@pytest.mark.parametrize(
    ("net", "batch", "calls", "joined"),
    [
        (halves, 1, (0, 0, 0), 3), (halves, 2, (1, 0, 2), 0), (halo, 1, (1, 0, 0), 2), (halo, 2, (1, 0, 0), 0),
        (fire, 1, (0, 0, 0), 2), (fire, 2, (1, 0, 0), 0), (fire, None, (1, 0, 0), 0),
        (dense, 1, (0, 0, 0), 6), (dense, 3, (3, 0, 0), 0),
        (uneven, 1, (0, 0, 0), 2), (uneven, 2, (1, 0, 0), 0),
    ],
)  # fmt: skip
def test_blocked(
    net: Case, batch: int | None, calls: tuple[int, int, int], joined: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Blocks of channels lie side by side where there is one image; the planes of more images lie between them."""
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (batch or N, 16, 9, 10)))
    module = build.module({f"y{number}": value for number, value in enumerate(net(build, x))})
    with caplog.at_level(logging.INFO, "argosy.cpu"):
        plan = plan_of(module)
    assert copies(plan) == calls
    assert ("concat copies" in caplog.text) == (batch != 1)
    bases = {call.writes[0] for call in steps_in(plan.body) if isinstance(call, CallStep)}
    in_whole = [n for n, buffer in enumerate(plan.buffers) if buffer.base is not None and buffer.base not in bases]
    assert len(in_whole) == joined
    data = np.random.default_rng(0).standard_normal((batch or 2, 16, 9, 10)).astype(np.float32)
    check(module, [([data], {})])


def test_workers_share_what_writes_into_a_whole() -> None:
    """The same bits on three threads as on one, which agrees with the interpreter above."""
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (1, 16, 56, 40)))
    y, z = dense(build, x)[0], halves(build, x)[0]
    artifact = argosy.compile(Program(build.module({"y": y, "z": z})), targets=("cpu",), strict=True)
    data = {"x": np.random.default_rng(0).standard_normal((1, 16, 56, 40)).astype(np.float32)}
    alone, *shared = (argosy.Session(artifact, device="cpu", threads=threads) for threads in (1, 3, 3, 3))
    expected = alone.run(data)
    for session in shared:
        for name, value in session.run(data).items():
            np.testing.assert_array_equal(value, expected[name])


def test_a_branch_copies_what_is_made_outside(caplog: pytest.LogCaptureFixture) -> None:
    """A body joins what its own kernels write; the log says what is copied, and why."""
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (ROWS, 6)))
    flag = build.parameter("flag", TensorType(BOOL, ()))
    made = own(build, x)
    branches = []
    for name in ("then", "other"):
        inner = Builder(name, namer=build.namer)
        outside = inner.parameter(f"{name}0", made.tensor)
        inside = own(inner, outside, reverse=name == "then")
        branches.append(inner.module({"y": own(inner, join(inner, inside, outside))}))
    y = build.add(If(*branches), flag, made, made)
    module = build.module({"y": y})
    with caplog.at_level(logging.INFO, "argosy.cpu"):
        plan = plan_of(module)
    assert copies(plan) == (0, 2, 0)
    assert caplog.text.count("another body writes it") == 2
    data = np.random.default_rng(0).standard_normal((ROWS, 6)).astype(np.float32)
    check(module, [([data, np.array(flag)], {}) for flag in (True, False)])


def test_what_would_need_more_memory_is_copied(caplog: pytest.LogCaptureFixture) -> None:
    """The first of two operands, made long before: the whole would be there while something large is."""
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (64, 6)))
    early = own(build, x)
    large = own(build, build.add(Broadcast((200, 64, 6)), early))
    late = own(build, build.add(Reduce("sum", (0,)), own(build, large, reverse=True)))
    wide = own(build, build.add(Reshape((-1, 6)), build.add(Broadcast((40, 64, 6)), late)))
    module = build.module({"y": own(build, join(build, early, wide))})
    with caplog.at_level(logging.INFO, "argosy.cpu"):
        plan = plan_of(module)
    assert copies(plan) == (0, 1, 0)
    assert "the arena would grow" in caplog.text
    check(module, [([np.random.default_rng(0).standard_normal((64, 6)).astype(np.float32)], {})])


def test_inspect_shows_views() -> None:
    build = Builder()
    module = build.module({"y": _pair(build, build.parameter("x", TensorType(FLOAT32, (ROWS, 6))))[0]})
    plan = plan_of(module)
    (whole,) = {buffer.base for buffer in plan.buffers if buffer.kind == "view"}
    lines = [line for line in plan_lines(plan) if line.startswith("view")]
    assert sorted(line.partition(" = ")[2] for line in lines) == [
        f"%{whole} + {shift} bytes: float32[4, 6]" for shift in (0, ROWS * LINE)
    ]


def draw_rows(build: Builder, x: Value, draw: Callable[[int], int]) -> list[Value]:
    """A random net of rows: chains and concatenations, some of which are results too."""
    values = [x]
    for _ in range(2 + draw(6)):
        pick = values[draw(len(values))]
        match draw(5):
            case 0:
                values.append(build.pointwise(lambda v: v * 0.5, pick))
            case 1:
                values.append(own(build, pick, reverse=bool(draw(2))))
            case 2:
                values.append(build.add(Slice((draw(2),), (4,), (0,)), pick))
            case _:
                parts = [values[draw(len(values))] for _ in range(1 + draw(3))]
                values.append(join(build, *parts))
    return values[-1 - draw(2) :] + values[draw(len(values)) :][:1]


def draw_images(build: Builder, x: Value, draw: Callable[[int], int]) -> list[Value]:
    """A random net of images: convolutions and poolings with and without a halo, joined along their channels."""
    values = [conv(build, x, (16, 32)[draw(2)])]
    for _ in range(2 + draw(5)):
        pick = values[draw(len(values))]
        match draw(7):
            case 0:
                values.append(conv(build, pick, (16, 20, 32)[draw(3)]))
            case 1:
                values.append(conv(build, pick, (16, 32)[draw(2)], 3))
            case 2:
                values.append(build.pointwise(lambda v: v.max(0.0), pick))
            case 3:
                first = 16 * draw(1 if pick.tensor.shape[1] == 16 else 2)
                values.append(build.add(Slice((first,), (first + (16, 8, 30)[draw(3)],), (1,)), pick))
            case 4:
                values.append(build.add(Pool("max", (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), pick))
            case _:
                parts = [values[draw(len(values))] for _ in range(2 + draw(2))]
                values.append(join(build, *parts, axis=1))
    return [conv(build, values[-1], 8, 3), *values[draw(len(values)) :][:1]]


NETS = {"rows": (draw_rows, (5, 6)), "images": (draw_images, (1, 16, 7, 9))}


def run_net(kind: str, seed: int) -> tuple[int, ...]:
    """Compare a random net with the interpreter; how many copies its plan makes."""
    make, shape = NETS[kind]
    random = np.random.default_rng(seed)
    build = Builder()
    dims = (N, *shape[1:]) if seed % 3 == 0 else shape
    x = build.parameter("x", TensorType(FLOAT32, dims))
    values = make(build, x, lambda count: int(random.integers(count)))
    module = build.module({f"y{number}": value for number, value in enumerate(dict.fromkeys(values))})
    check(module, [([random.standard_normal(shape).astype(np.float32)], {})], f"{kind} {seed}")
    return copies(plan_of(module))


@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("seed", range(5))
def test_random_nets(kind: str, seed: int) -> None:
    run_net(kind, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", NETS)
@pytest.mark.parametrize("first", range(5, 205, 25))
def test_more_random_nets(kind: str, first: int) -> None:
    for seed in range(first, first + 25):
        run_net(kind, seed)

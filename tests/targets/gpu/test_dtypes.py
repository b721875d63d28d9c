"""Elements of every type: kernels of every arch hold them; types that no arch has are told by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import argosy
from argosy.errors import CompileError
from argosy.ir import Builder, Module, Program, TensorType
from argosy.ir.dtype import DTYPES, INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Value
from argosy.ops.control import Scan
from argosy.ops.index import Compress, Gather, GatherElements, GatherND, Triangle
from argosy.ops.joining import Concat, Split, Tile
from argosy.ops.scatter import ScatterElements
from argosy.ops.slicing import Pad, ReverseSequence, Slice
from argosy.ops.view import BitCast, Broadcast, Reshape, Transpose
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.base import find_arch
from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.lower import LoweredModule, lower_module
from argosy.targets.gpu.target import GpuTarget

HELD = [name for name in DTYPES if name not in ("complex128", "string")]
"""What kernels of all archs hold; nothing else is there to name."""


def lowered(module: Module, arch: str, *, strict: bool) -> LoweredModule:
    target = find_arch(arch)
    assert isinstance(target, GpuTarget)
    options = CompileOptions(strict=strict)
    return lower_module(PassManager(tuple(target.pipeline(options))).run(module), target.row, options, {}, {})


def transposed(dtype: str) -> Module:
    b = Builder()
    x = b.tensor_parameter("x", dtype, ["N", 8])
    return b.module({"y": b.add(Transpose((1, 0)), x, source="Transpose (node 0 → 'y')")})


@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_of_every_arch_hold_every_type(arch: str) -> None:
    for dtype in HELD:
        assert not lowered(transposed(dtype), arch, strict=True).host_steps, dtype


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("dtype", "said"), [("complex128", "kernels hold no complex128"), ("string", "string[N, 8]")])
def test_a_type_that_no_arch_has_is_told_with_the_node(arch: str, dtype: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        lowered(transposed(dtype), arch, strict=True)
    assert caught.value.where == "Transpose (node 0 → 'y')"
    assert said in caught.value.what
    (step,) = lowered(transposed(dtype), arch, strict=False).host_steps
    assert said in step


def test_what_computes_with_complex_numbers_is_told() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "complex64", [4, 8])
    module = b.module({"y": b.pointwise("mul", x, x)})
    with pytest.raises(CompileError, match="kernels hold no complex64"):
        lowered(module, "gfx942", strict=True)


def numbers(b: Builder, *values: int) -> Value:
    return b.constant(Literal.of(np.asarray(values, np.int64), INT64))


MOVES: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "transpose": lambda b, x, _: b.add(Transpose((1, 0)), x),
    "reshape": lambda b, x, _: b.add(Reshape((8, 3)), b.add(Transpose((1, 0)), x)),
    "broadcast": lambda b, x, _: b.add(Broadcast((2, 4, 6)), x),
    "slice": lambda b, x, _: b.add(Slice((3, 5), (0, 0), (0, 1), (-1, -2)), x),
    "pad": lambda b, x, _: b.add(Pad("constant", (1, 0, 2, 3)), x),
    "pad with a value": lambda b, x, _: b.add(
        Pad("constant", (1, 0, 2, 3)), x, None, b.constant(Literal.of(np.asarray(1.5 - 2j, np.complex64)))
    ),
    "reflect": lambda b, x, _: b.add(Pad("reflect", (1, 0, 2, 3)), x),
    "concat": lambda b, x, z: b.add(Concat(1), x, z),
    "split": lambda b, x, _: b.add_all(Split(1, 2, (2, 4)), x)[1],
    "tile": lambda b, x, _: b.add(Tile((2, 3)), x),
    "select": lambda b, x, z: b.pointwise("select", b.tensor_parameter("c", "bool", [6]), x, z),
    "gather": lambda b, x, _: b.add(Gather(1), x, numbers(b, 5, -1, 0)),
    "gather_elements": lambda b, x, _: b.add(
        GatherElements(1), x, b.constant(Literal.of(np.asarray([[0, 5], [1, -1]], np.int64)))
    ),
    "gather_nd": lambda b, x, _: b.add(GatherND(0), x, b.constant(Literal.of(np.asarray([[3, 1], [0, 2]], np.int64)))),
    "triangle": lambda b, x, _: b.add(Triangle(upper=True), x),
    "reverse_sequence": lambda b, x, _: b.add(ReverseSequence(0, 1), x, numbers(b, 6, 1, 3, 4)),
    "compress": lambda b, x, _: b.add(Compress(1), x, b.tensor_parameter("c", "bool", [6])),
    "scatter_elements": lambda b, x, z: b.add(
        ScatterElements(1, "none"), x, b.constant(Literal.of(np.asarray([[4, 0], [1, 2]], np.int64))), b.add(
            Slice((0, 0), (2, 2), (0, 1), (1, 1)), z)
    ),
    "bit_cast": lambda b, x, _: b.add(BitCast(DTYPES["int64"]), x),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_complex_numbers_are_moved_bit_by_bit(name: str) -> None:
    interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
    b = Builder()
    x, z = (b.tensor_parameter(letter, "complex64", [4, 6]) for letter in "xz")
    program = Program(b.module({"y": MOVES[name](b, x, z)}))
    agrees(program, interpreted_run(program, options=CompileOptions(strict=True)), np.complex64)


@pytest.mark.parametrize("source", ["complex64", "complex128"])
def test_bits_of_complex_numbers_are_read_as_such(source: str) -> None:
    interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
    b = Builder()
    program = Program(b.module({"y": b.add(BitCast(DTYPES[source]), b.tensor_parameter("x", source, [4, 6]))}))
    agrees(program, interpreted_run(program, options=CompileOptions(strict=True)), DTYPES[source].numpy.type)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_scan_goes_through_complex_numbers(dtype: str, *, backwards: bool) -> None:
    """Its body is a host step where kernels hold none; the elements come and go all the same."""
    interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
    inner = Builder()
    e = inner.tensor_parameter("e", dtype, [6])
    body = inner.module({"o": inner.add(Slice((5,), (-7,), (0,), (-1,)), e)})
    b = Builder()
    x = b.tensor_parameter("x", dtype, [4, 6])
    program = Program(b.module({"y": b.add(Scan(body, 0, (0,), (backwards,), (0,), (False,)), x)}))
    agrees(program, interpreted_run(program), DTYPES[dtype].numpy.type)


def agrees(program: Program, device: Callable[..., dict[str, np.ndarray]], complex_: type) -> None:
    """Equal bits to the reference, of numbers that are not numbers and zeros of either sign among them."""
    rng = np.random.default_rng(0)
    feeds: dict[str, np.ndarray] = {}
    for name, kind in program.inputs.items():
        assert isinstance(kind, TensorType)
        parts = rng.standard_normal((2, *map(int, kind.dims or ())))
        parts.reshape(-1)[:4] = (np.nan, -0.0, np.inf, -np.inf)
        feeds[name] = parts[0] > 0 if kind.dtype.kind == "bool" else (parts[0] + 1j * parts[1]).astype(complex_)
    expected = argosy.Session(argosy.compile(program, targets=("ref",))).run(feeds)
    found = device(feeds)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert found[name].tobytes() == value.tobytes(), name

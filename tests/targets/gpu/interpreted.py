"""A device that runs the Triton text of kernels with Triton's own interpreter, in numpy: no GPU, no code generation.

What it shows is that the text means the right thing; that the code does, devices and the emulator show.
"""

from __future__ import annotations

import ctypes
import inspect
import linecache
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal
from unittest import mock

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray

import argosy
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.plan import TensorMapArgument
from argosy.drivers.discovery import DeviceInfo
from argosy.ir.op import Env
from argosy.ir.program import Program
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.runtime.gpu.device import DeviceMemoryError
from argosy.runtime.gpu.executor import DeviceExecutor
from argosy.runtime.memory import address_of
from argosy.targets.gpu import variant
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.memory import device_memory
from argosy.targets.gpu.pipeline import pipeline
from argosy.toolchains.triton import CompiledKernel, GpuCode, Refused, TritonSource

os.environ["TRITON_INTERPRET"] = "1"  # noqa: TID251 - Triton reads it, when it is imported

import triton
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from tests.targets.gpu.interpreted_reductions import use_blocks

__all__ = ["InterpretedDevice", "InterpretedRunner", "interpreted_kernels", "interpreted_run"]

_SEPARATOR = b"\0\0argosy\0\0"


class _Library:
    """Functions of the vendors' libraries, by numpy and scipy."""

    _FUNCTIONS: ClassVar[dict[str, Any]] = {
        **{
            name: getattr(np, name)
            for name in (
                "floor",
                "ceil",
                "rint",
                "trunc",
                "exp",
                "expm1",
                "log",
                "log1p",
                "sin",
                "cos",
                "tan",
                "sinh",
                "cosh",
                "tanh",
                "sqrt",
                "exp2",
                "log2",
                "fmod",
                "copysign",
            )
        },
        **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
        "erf": np.vectorize(math.erf, otypes=[np.float64]),
        "pow": np.power,
    }

    def __getattr__(self, name: str) -> Any:
        function = self._FUNCTIONS[name]

        def call(*args: Any) -> Any:
            values = [arg if isinstance(arg, tl.tensor) else triton_interpreter._implicit_cvt(arg) for arg in args]
            result = function(*(value.handle.data for value in values))
            shape = np.broadcast_shapes(*(tuple(value.shape) for value in values))
            kind = values[0].dtype
            handle = triton_interpreter.TensorHandle(result.astype(values[0].handle.data.dtype), kind)
            return tl.tensor(handle, tl.block_type(kind, list(shape)) if shape else kind)

        return call


_PRODUCT = triton_interpreter.InterpreterBuilder.create_dot
_CAST = triton_interpreter.InterpreterBuilder.cast_impl


def _cast(builder: Any, source: Any, kind: Any) -> Any:
    """Another element type: Triton's own form cuts off what devices round to bfloat16."""
    if (source.dtype.scalar, kind.scalar) == (tl.float32, tl.bfloat16):
        rounded = source.data.astype(ml_dtypes.bfloat16).view(np.uint16)
        return triton_interpreter.TensorHandle(rounded, kind.scalar)
    return _CAST(builder, source, kind)


def _product(builder: Any, left: Any, right: Any, *rest: Any) -> Any:
    """What matrix instructions give: Triton's own form takes the bits of bfloat16 for integers."""
    return _PRODUCT(builder, _widened(builder, left), _widened(builder, right), *rest)


def _widened(builder: Any, handle: Any) -> Any:
    return builder.cast_impl(handle, tl.float32) if handle.dtype.scalar == tl.bfloat16 else handle


def _repaired(builder: Any) -> Any:
    return mock.patch.multiple(builder, create_dot=_product, cast_impl=_cast, create_splat=_splat)


def interpreted_kernels(
    sources: Sequence[TritonSource], target: GpuCode, **_: object
) -> list[CompiledKernel | Refused]:
    form: Literal["ptx", "cubin"] = "ptx" if target.portable else "cubin"
    made: list[CompiledKernel | Refused] = []
    for source in sources:
        if source.language != "triton":
            made.append(Refused("Triton's interpreter knows no other language"))
            continue
        code = _SEPARATOR.join([source.text.encode(), " ".join(kind for _, kind in source.types).encode()])
        made.append(CompiledKernel(form, code, "", source.entry, 32, 0))
    return made


class _Grid:
    """What kernels that may start early call: here each starts when the one before it has ended."""

    @staticmethod
    def gdc_wait() -> None:
        pass

    @staticmethod
    def gdc_launch_dependents() -> None:
        pass


def _splat(builder: Any, kind: Any, value: Any) -> Any:
    """A scalar as a block. What compares keeps the type of what was compared in Triton's, and bools became integers."""
    del builder
    return triton_interpreter.TensorHandle(np.full(kind.shape, value.data.reshape(-1)[0]), value.dtype.scalar)


use_blocks()


def _range(*bounds: Any) -> Iterator[Any]:
    """`range` in a kernel: what it gives are integers of the device, not Python's, as when it is compiled."""
    wide = any(isinstance(bound, tl.tensor) and bound.dtype == tl.int64 for bound in bounds)
    kind, width = (tl.int64, np.int64) if wide else (tl.int32, np.int32)
    for number in range(*map(int, bounds)):
        yield tl.tensor(triton_interpreter.TensorHandle(np.array([number], width), kind), kind)


class InterpretedDevice:
    """Memory of this process, and kernels that Triton interprets. Graphs are lists of work.

    There are `limit` bytes.
    """

    def __init__(self, limit: int = 1 << 40) -> None:
        self._blocks: dict[int, NDArray[np.uint8]] = {}
        self._modules: dict[int, bytes] = {}
        self._functions: dict[int, Any] = {}
        self._graph: list[tuple[Any, ...]] | None = None
        self._graphs: dict[int, list[tuple[Any, ...]]] = {}
        self.info = DeviceInfo("cuda", 0, "Triton's interpreter", "sm_90", 1, limit, 13000, "")

    reaches_host = True

    def enter(self) -> int:
        return 0

    def leave(self, before: int) -> None:
        pass

    def allocate_host(self, size: int) -> NDArray[np.uint8]:
        return np.full(size, 0xCD, np.uint8)

    def free_host(self, memory: NDArray[np.uint8]) -> None:
        pass

    def create_event(self, *, timed: bool = False) -> int:
        return 1

    def elapsed(self, first: int, last: int) -> float:
        return 0.0

    def destroy_event(self, event: int) -> None:
        pass

    def record(self, event: int, stream: int) -> None:
        pass

    def wait(self, stream: int, event: int) -> None:
        pass

    @property
    def free_memory(self) -> int:
        """Bytes that nobody has."""
        return self.info.memory - sum(raw.size for raw in self._blocks.values())

    def allocate(self, size: int) -> int:
        if size + 512 > self.free_memory:
            raise DeviceMemoryError(self.info.name, size, self.free_memory)
        raw = np.full(size + 512, 0xCD, np.uint8)
        address = -(-address_of(raw) // 256) * 256
        self._blocks[address] = raw
        return address

    def free(self, address: int) -> None:
        del self._blocks[address]

    def create_stream(self) -> int:
        return 1

    def destroy_stream(self, stream: int) -> None:
        pass

    def upload(self, address: int, source: NDArray[Any], stream: int) -> None:
        self._do(ctypes.memmove, address, source, source.nbytes)

    def download(self, target: NDArray[Any], address: int, stream: int) -> None:
        self._do(ctypes.memmove, target, address, target.nbytes)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._do(ctypes.memmove, target, source, size)

    def fill(self, address: int, size: int, stream: int) -> None:
        self._do(ctypes.memset, address, 0, size)

    def synchronize(self, stream: int) -> None:
        pass

    def load(self, code: bytes) -> int:
        self._modules[len(self._modules) + 1] = code
        return len(self._modules)

    def unload(self, module: int) -> None:
        pass

    def tensor_map(
        self, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
    ) -> bytes:
        raise NotImplementedError("Triton's interpreter has no tensor maps")

    def function(self, module: int, entry: str, shared: int) -> int:
        text, types = self._modules[module].split(_SEPARATOR)
        name = f"<{entry}>"
        source = text.decode()
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        names: dict[str, Any] = {
            "triton": triton, "tl": tl, "libdevice": _Library(), "gdc": _Grid, "range": _range, "__name__": entry,
        }  # fmt: skip
        exec(compile(source, name, "exec"), names)  # noqa: S102 - our own text
        number = len(self._functions) + 1
        self._functions[number] = (names[entry], types.decode().split())
        return number

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        parameters: bytes,
        *,
        programmatic: bool = False,
    ) -> None:
        self._do(self._launch, function, grid, parameters)

    def _do(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do work, or remember it where it is captured."""
        if self._graph is not None:
            self._graph.append((work, arguments))
            return
        work(*(address_of(each) if isinstance(each, np.ndarray) else each for each in arguments))

    def _launch(self, function: int, grid: Sequence[int], parameters: bytes) -> None:
        kernel, types = self._functions[function]
        args = []
        offset = 0
        for kind in types:
            pointer = kind.startswith("*")
            width = 8 if pointer or kind == "i64" else 4
            offset = -(-offset // width) * width
            raw = np.frombuffer(parameters, np.uint64 if pointer else np.int64 if width == 8 else np.int32, 1, offset)
            offset += width
            own = tl.str_to_ty(kind, None)
            args.append(tl.tensor(triton_interpreter.TensorHandle(raw.copy(), own), own))
        _execute(kernel, args, grid)

    def begin_capture(self, stream: int) -> None:
        self._graph = []

    def end_capture(self, stream: int) -> int:
        assert self._graph is not None
        self._graphs[len(self._graphs) + 1] = self._graph
        self._graph = None
        return len(self._graphs)

    def launch_graph(self, graph: int, stream: int) -> None:
        for work, arguments in self._graphs[graph]:
            self._do(work, *arguments)

    def destroy_graph(self, graph: int) -> None:
        pass


def _execute(kernel: Any, args: Sequence[Any], grid: Sequence[int]) -> None:
    function = kernel.rewrite() if hasattr(kernel, "rewrite") else kernel.fn
    scope = triton_interpreter._patch_lang(function)
    builder = triton_interpreter.interpreter_builder
    try:
        builder.set_grid_dim(*grid)
        names = list(inspect.signature(function).parameters)
        with np.errstate(all="ignore"), _repaired(type(builder)):
            for z in range(grid[2]):
                for y in range(grid[1]):
                    for x in range(grid[0]):
                        builder.set_grid_idx(x, y, z)
                        function(**dict(zip(names, args, strict=True)))
    finally:
        scope.restore()


def interpreted_run(program: Program, arch: str = "sm_90", options: CompileOptions | None = None) -> Any:
    """A function that runs a program's inputs, by name, as the GPU target's kernels mean it."""
    row = find_gpu(arch)
    assert row is not None
    chosen = options or CompileOptions()
    module = PassManager(tuple(pipeline(chosen))).run(program.main)
    with mock.patch.object(variant, "compile_kernels", interpreted_kernels):
        made = variant.compiled_variant(module, row, chosen)
    lowered, plan, entries = made.lowered, made.plan, made.entries
    weights = lowered.weights
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), lambda ref: weights[ref.sha256], "test")
    executor = DeviceExecutor(plan, decoder, "test", InterpretedDevice(), [entries[code.path] for code in plan.code])
    assert device_memory(plan) >= executor.memory, "weights take more memory than the variant would ask for"
    names = list(program.outputs)

    def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
        results = executor.run([inputs[name] for name in program.inputs], Env())
        return dict(zip(names, results, strict=True))

    run.host_steps = lowered.host_steps  # type: ignore[attr-defined]
    return run


class InterpretedRunner:
    """For the conformance suite. `strict` refuses host steps."""

    def __init__(self, *, strict: bool = True) -> None:
        self._options = CompileOptions(strict=strict)

    def prepare(self, model: onnx.ModelProto) -> Any:
        """A function that runs the model."""
        return interpreted_run(argosy.load_onnx(model), options=self._options)

"""Runs the Gluon text of attention in numpy: a thread for each partition of warps, barriers that wait for each other.

What it shows is that the text means the right thing, that no step is read before it was copied or overwritten before it
was read, and that no partition waits for ever. Layouts mean nothing here; products are done when they are asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["run_gluon"]

_SECONDS: Final = 60
"""After which a wait is one for ever."""


class _Block(np.ndarray[Any, Any]):
    """An array with what Gluon's tensors have."""

    def to(self, kind: Any) -> Any:
        return self.astype(kind)


def _block(array: Any) -> Any:
    return np.asarray(array).view(_Block)


class _Pointer:
    """A tensor in memory, flat, and places in it."""

    def __init__(self, memory: NDArray[Any], places: Any = 0) -> None:
        self.memory, self.places = memory, places

    def __add__(self, places: Any) -> _Pointer:
        return _Pointer(self.memory, self.places + places)


class _Barrier:
    """An mbarrier (PTX ISA, "mbarrier"): a phase ends when so many have arrived and all bytes have come."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._count = self._pending = self._bytes = self._phase = 0

    def init(self, count: int) -> None:
        self._count = self._pending = count

    def arrive(self, *, arrivals: int = 1, expected: int = 0, copied: int = 0) -> None:
        with self._changed:
            self._pending -= arrivals
            self._bytes += expected - copied
            assert self._pending >= 0, "more arrived than a phase waits for"
            if self._pending == 0 and self._bytes == 0:
                self._phase, self._pending = self._phase + 1, self._count
                self._changed.notify_all()

    def wait(self, parity: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._phase % 2 != parity, _SECONDS):
                raise TimeoutError("a partition waits for ever")


class _Shared:
    """Shared memory: places of the same size, or one of them."""

    def __init__(self, places: Sequence[Any]) -> None:
        self._places = places
        self.value: Any = None

    def index(self, place: int) -> Any:
        return self._places[place]


class _Room:
    """One place of shared memory, full of what nobody wrote."""

    def __init__(self, shape: tuple[int, ...], kind: Any) -> None:
        self.value = np.full(shape, np.nan, kind)

    def permute(self, order: tuple[int, ...]) -> Any:
        return SimpleNamespace(value=self.value.transpose(order))


def _value(operand: Any) -> NDArray[np.float32]:
    return np.asarray(getattr(operand, "value", operand)).astype(np.float32)


def run_gluon(
    text: str, grid: int, maps: Sequence[tuple[NDArray[Any], tuple[int, ...]]], memories: Sequence[NDArray[Any]]
) -> None:
    """Run a kernel: `maps` are matrices and the boxes that are copied of them, `memories` what pointers point to."""
    for program in range(grid):
        _Program(program).run(text, maps, memories)


class _Program:
    def __init__(self, number: int) -> None:
        self._number = number
        self._changed = threading.Condition()

    def run(self, text: str, maps: Sequence[tuple[NDArray[Any], tuple[int, ...]]], memories: Sequence[Any]) -> None:
        names: dict[str, Any] = {"triton": SimpleNamespace(jit=lambda function: function), "__name__": "gluon"}
        names |= {"tl": self._language(), "hopper": self._hopper(), "gdc": SimpleNamespace(gdc_wait=lambda: None)}
        exec(compile(text, "<gluon>", "exec"), names)  # noqa: S102 - our own text
        given = [SimpleNamespace(matrix=matrix, box=box, dtype=matrix.dtype, layout=None) for matrix, box in maps]
        with np.errstate(all="ignore"):
            names["ARGOSY_ENTRY"](*given, *map(_Pointer, memories))

    def _language(self) -> SimpleNamespace:
        def load(pointer: _Pointer) -> Any:
            return _block(pointer.memory[pointer.places])

        def store(pointer: _Pointer, value: Any) -> None:
            places, values = np.broadcast_arrays(pointer.places, value)
            pointer.memory[places] = values

        def nothing(*_: Any, **__: Any) -> None:
            pass

        return SimpleNamespace(
            constexpr=int, float16=np.float16, float32=np.float32, int64=np.int64, int32=np.int32,
            program_id=lambda _: self._number, static_range=range, inline_asm_elementwise=self._pinned,
            NVMMADistributedLayout=nothing, SliceLayout=nothing, DotOperandLayout=nothing,
            arange=lambda start, end, _: _block(np.arange(start, end)),
            full=lambda shape, value, kind, _: _block(np.full(shape, value, kind)),
            zeros=lambda shape, kind, _: _block(np.zeros(shape, kind)), zeros_like=np.zeros_like,
            convert_layout=lambda value, _: value, to_tensor=lambda value: value, where=lambda *a: _block(np.where(*a)),
            max=lambda value, axis: _block(np.fmax.reduce(value, axis)), sum=lambda value, axis: value.sum(axis),
            maximum=np.maximum, minimum=np.minimum, exp2=np.exp2, fma=lambda a, b, c: a * np.float32(b) + c,
            load=load, store=store, allocate_shared_memory=self._shared, warp_specialize=self._specialize,
        )  # fmt: skip

    @staticmethod
    def _pinned(text: str, constraints: str, args: Sequence[Any], *_: Any, **__: Any) -> Any:
        assert text.startswith("{ .reg .pred p; setp.lt.f32")
        assert constraints == "=f,f"
        assert not (args[0] < 0).any()
        return args[0]

    def _shared(self, kind: Any, shape: Sequence[int], _: Any) -> _Shared:
        if kind is np.int64:
            return _Shared([_Barrier(self._changed) for _ in range(shape[0])])
        return _Shared([_Room(tuple(shape[1:]), kind) for _ in range(shape[0])])

    def _hopper(self) -> SimpleNamespace:
        def init(barrier: _Barrier, count: int) -> None:
            barrier.init(count)

        def expect(barrier: _Barrier, size: int) -> None:
            barrier.arrive(expected=size)

        def arrive(barrier: _Barrier, *, pred: bool = True) -> None:
            if pred:
                barrier.arrive()

        def copy(source: Any, place: Sequence[int], barrier: _Barrier, room: _Room) -> None:
            row, column = place
            high, wide = source.box
            part = source.matrix[row : row + high, column : column + wide]
            assert part.shape == room.value.shape
            room.value[:] = part
            barrier.arrive(arrivals=0, copied=part.nbytes)

        def multiply(left: Any, right: Any, sums: Any, *, use_acc: bool = True, is_async: bool) -> Any:
            assert is_async
            product = _value(left) @ _value(right)
            return _block(sums + product if use_acc else product)

        def wait(_: int, deps: tuple[Any, ...]) -> Any:
            return deps if len(deps) > 1 else deps[0]

        return SimpleNamespace(
            mbarrier=SimpleNamespace(
                init=init, expect=expect, arrive=arrive, MBarrierLayout=lambda: None,
                wait=lambda barrier, parity: barrier.wait(parity),
            ),
            tma=SimpleNamespace(async_load=copy), fence_async_shared=lambda: None, warpgroup_mma=multiply,
            warpgroup_mma_wait=wait,
        )  # fmt: skip

    @staticmethod
    def _specialize(parts: Sequence[tuple[Callable[..., None], tuple[Any, ...]]], *_: Any) -> None:
        failed: list[BaseException] = []

        def work(function: Callable[..., None], args: tuple[Any, ...]) -> None:
            try:
                with np.errstate(all="ignore"):
                    function(*args)
            except BaseException as error:  # noqa: BLE001 - told where it is asked for
                failed.append(error)

        threads = [threading.Thread(target=work, args=part, daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * _SECONDS)
        if failed:
            raise failed[0]

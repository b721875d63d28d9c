"""Tensors that lie on the device: in by DLPack and the array interface, out without a copy to the host."""

from __future__ import annotations

import ctypes
import gc
import struct
from collections.abc import Iterator
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from argosy.artifact.plan import StraightBlock
from argosy.drivers.discovery import devices
from argosy.errors import UsageError
from argosy.runtime.gpu import dlpack
from argosy.runtime.gpu.array import DeviceArray, device_array
from argosy.runtime.gpu.device import open_device
from argosy.runtime.session import Session
from tests.runtime.gpu.fakes import KINDS, Fake, artifact, faked, given, launch, numbers, plan, planned

RECORD = plan(
    {"a": 0, "b": 1}, {"y": 3},
    [given("float32[4,8]"), given("float32[4,8]"), planned("float32[4,8]"), planned("float32[4,8]")],
    [StraightBlock((launch("add", [0, 1], [2], [32]), launch("scale", [2], [3], [32, 3])))],
)  # fmt: skip


@pytest.fixture(params=KINDS)
def fake(request: pytest.FixtureRequest) -> Iterator[Fake]:
    with faked(request.param) as made:
        yield made


class Foreign:
    """A tensor of another library, on the device; it counts what is asked of it."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.device = open_device(devices()[0])
        before = self.device.enter()
        self.address, stream = self.device.allocate(value.nbytes), self.device.create_stream()
        held = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self.device.upload(self.address, held, stream)
        self.device.synchronize(stream)
        self.device.destroy_stream(stream)
        self.device.leave(before)
        self.array = DeviceArray(self.device, self.address, value.shape, value.dtype, None)
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()

    def free(self) -> None:
        before = self.device.enter()
        self.device.free(self.address)
        self.device.leave(before)


class Plain:
    """One that has the array interface alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_arrays_go_in_and_come_out_on_the_device(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a, b = numbers(4, 8), numbers(4, 8) * 2
    there = Foreign(a), Foreign(b)
    kept = []
    for _ in range(4):
        result = session.run({"a": there[0], "b": there[1]})["y"]
        assert isinstance(result, DeviceArray)
        kept.append(result)
    assert there[0].streams == [1 if fake.kind == "cuda" else 0] * 4
    for result in kept:
        np.testing.assert_array_equal(result.numpy(), (a + b) * 3)
    assert len({result.address for result in kept}) == 4, "a result's memory was used again"
    again = session.run({"a": kept[0], "b": b})["y"]  # our own, and one of the host
    np.testing.assert_array_equal(np.asarray(again), ((a + b) * 3 + b) * 3)
    np.testing.assert_array_equal(session.run({"a": a, "b": b})["y"], (a + b) * 3)
    assert isinstance(session.run({"a": a, "b": b})["y"], np.ndarray)
    del session, result, kept, again
    gc.collect()
    for each in there:
        each.free()
    assert not fake.alive


def test_memory_of_results_serves_later_ones(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a = Foreign(numbers(4, 8))
    addresses = {session.run({"a": a, "b": a})["y"].address for _ in range(5)}
    assert len(addresses) == 1
    a.free()


def test_a_result_outlives_its_session(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a = Foreign(numbers(4, 8))
    result = session.run({"a": a, "b": a})["y"]
    del session
    gc.collect()
    np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 6)
    a.free()
    del result
    gc.collect()
    assert not fake.alive


def test_runs_in_the_order_of_a_stream(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a = Foreign(numbers(4, 8))
    device = a.device
    before = device.enter()
    stream = device.create_stream()
    held = np.full(128, 0, np.uint8)
    for number in range(4):
        launches = fake.library.fake_launches()
        device.upload(a.address, held, stream)  # what the run must come behind
        result = session.run_async({"a": a, "b": a}, stream).result()["y"]
        assert fake.library.fake_launches() == launches, f"run {number} was waited for"
        follower = device.allocate(128)
        device.copy(follower, result.address, 128, stream)  # and what must come behind the run
        seen = np.full((4, 8), -1, np.float32)
        device.download(seen.reshape(-1).view(np.uint8), follower, stream)
        device.synchronize(stream)
        np.testing.assert_array_equal(seen, held.view(np.float32).reshape(4, 8) * 6)
        held = (numbers(4, 8) + number).reshape(-1).view(np.uint8)
        device.free(follower)
        assert result.__cuda_array_interface__["stream"] == stream
    np.testing.assert_array_equal(result.numpy(), (numbers(4, 8) + 2) * 6)
    result = session.run_async({"a": numbers(4, 8), "b": result}, stream).result()["y"]
    np.testing.assert_array_equal(result.numpy(), (numbers(4, 8) + (numbers(4, 8) + 2) * 6) * 3)
    del result, session
    gc.collect()
    device.destroy_stream(stream)
    device.leave(before)
    a.free()
    assert not fake.alive


def test_a_session_that_goes_waits_for_its_work(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a = Foreign(numbers(4, 8))
    before = a.device.enter()
    stream = a.device.create_stream()
    for _ in range(3):
        result = session.run_async({"a": a, "b": a}, stream).result()["y"]
    del session
    gc.collect()
    np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 6)
    del result
    gc.collect()
    a.device.destroy_stream(stream)
    a.device.leave(before)
    a.free()
    assert not fake.alive


def test_memory_of_a_session_is_what_lies_on_the_device(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    assert session.memory == 0
    session.run({"a": numbers(4, 8), "b": numbers(4, 8)})
    assert session.memory >= 3 * 128


def test_the_array_interface(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    a = Foreign(numbers(4, 8))
    if fake.kind == "cuda":
        result = session.run({"a": Plain(a.array), "b": a})["y"]
        np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 6)
    told = a.array.__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["data"]) == ((4, 8), "<f4", (a.address, False))
    a.free()


def test_wrong_shapes_and_types_are_refused(fake: Fake) -> None:
    session = Session(artifact(RECORD, fake.kind))
    for wrong in (numbers(8, 4), numbers(4, 8).astype(np.float16)):
        there = Foreign(wrong)
        with pytest.raises(UsageError, match="input 'a': expected float32"):
            session.run({"a": there, "b": numbers(4, 8)})
        there.free()


def test_what_its_library_does_not_hand_out_is_refused(fake: Fake) -> None:
    class Bound(Foreign):
        def __dlpack__(self, stream: int | None = None) -> Any:
            raise BufferError("it requires gradients")

    session, there = Session(artifact(RECORD, fake.kind)), Bound(numbers(4, 8))
    with pytest.raises(UsageError, match="input 'a': .*it requires gradients"):
        session.run({"a": there, "b": there})
    there.free()


def test_a_tensor_that_is_not_dense_is_refused() -> None:
    with pytest.raises(UsageError, match="not dense"):
        dlpack.check_dense((4, 8), (1, 4), "x")
    dlpack.check_dense((4, 1, 8), (8, 99, 1), "x")  # an axis of one has any stride
    dlpack.check_dense((4, 8), (), "x")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint64", "bool", "complex64"])
def test_capsules_hold_what_they_were_made_of(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype)) if dtype == "bfloat16" else np.dtype(dtype)
    capsule = dlpack.exported((dlpack.CUDA, 3), 4096, (2, 0, 5), kind, object())
    assert dlpack.imported(capsule) == dlpack.Tensor(dlpack.CUDA, 3, 4096, (2, 0, 5), kind)


def test_numpy_reads_our_capsules_and_we_read_its() -> None:
    memory = numbers(3, 5)

    class Ours:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: Any) -> Any:
            return dlpack.exported((1, 0), memory.ctypes.data, memory.shape, memory.dtype, memory)

    before = len(dlpack._given)
    seen = np.from_dlpack(Ours())
    np.testing.assert_array_equal(seen, memory)
    assert len(dlpack._given) == before + 1
    del seen
    gc.collect()
    assert len(dlpack._given) == before, "the consumer's deleter did not reach us"
    Ours().__dlpack__()  # nobody takes it
    gc.collect()
    assert len(dlpack._given) == before
    assert dlpack.imported(memory.__dlpack__()) == dlpack.Tensor(1, 0, memory.ctypes.data, (3, 5), memory.dtype)


def test_an_array_of_ours_passes_unchanged(fake: Fake) -> None:
    a = Foreign(numbers(4))
    assert device_array(a.array) is a.array
    a.free()


class Table(ctypes.Structure):
    """DLPackExchangeAPI, from dlpack.h 1.3."""

    _fields_: ClassVar[Any] = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p), ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p), ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    ]  # fmt: skip


def exchanging(kind: tuple[int, int], stream: int, strides: tuple[int, ...] | None, versions: list[int]) -> type:
    """A type of tensors with a table of C functions for each version, the first one's known first."""

    class Quick(Foreign):
        def __dlpack__(self, stream: int | None = None) -> Any:
            raise AssertionError("the slow way was taken")

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)  # type: ignore[untyped-decorator]
    def view(value: Quick, place: int) -> int:
        shape = (ctypes.c_int64 * 2)(*value.array.shape)
        steps = ctypes.addressof(kept_steps) if strides else 0
        value.held = shape  # type: ignore[attr-defined]
        raw = struct.pack("=QiiiBBHQQQ", value.address - 4, *kind, 2, 2, 32, 1, ctypes.addressof(shape), steps, 4)
        ctypes.memmove(place, raw, len(raw))
        return 0

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)  # type: ignore[untyped-decorator]
    def current(family: int, index: int, place: int) -> int:
        assert (family, index) == kind
        ctypes.c_void_p.from_address(place).value = stream
        return 0

    kept_steps = (ctypes.c_int64 * 2)(*(strides or (0, 0)))
    functions = [ctypes.cast(each, ctypes.c_void_p).value for each in (view, current)]
    tables: list[Table] = []
    for major in reversed(versions):
        previous = ctypes.addressof(tables[-1]) if tables else None
        tables.append(Table(major, 0, previous, 1, 1, 1, *(functions if major == 1 else (None, None))))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(tables[-1]), b"dlpack_exchange_api", None)
    Quick.__dlpack_c_exchange_api__ = capsule  # type: ignore[attr-defined]
    Quick.kept = (view, current, kept_steps, tables)  # type: ignore[attr-defined]
    return Quick


@pytest.mark.parametrize("versions", [[1], [2, 1]])
def test_a_library_with_a_table_of_functions_is_asked_by_it(fake: Fake, versions: list[int]) -> None:
    session = Session(artifact(RECORD, fake.kind))
    device = open_device(devices()[0])
    before = device.enter()
    stream = device.create_stream()
    device.leave(before)
    family = {"cuda": 2, "hip": 10}[fake.kind]
    there = exchanging((family, 0), stream, None, versions)(numbers(4, 8))
    found = device_array(there)
    assert found is not None
    assert (found.address, found.shape, found.stream) == (there.address, (4, 8), stream)
    for _ in range(4):
        result = session.run({"a": there, "b": there})["y"]
        np.testing.assert_array_equal(result.numpy(), numbers(4, 8) * 6)
    there.free()
    before = device.enter()
    device.destroy_stream(stream)
    device.leave(before)


def test_a_table_of_functions_tells_where_a_tensor_lies_and_how(fake: Fake) -> None:
    family = {"cuda": 2, "hip": 10}[fake.kind]
    with pytest.raises(UsageError, match="strides"):
        device_array(exchanging((family, 0), 0, (1, 4), [1])(numbers(4, 8)))
    with pytest.raises(UsageError, match="number 7"):
        device_array(exchanging((family, 7), 0, None, [1])(numbers(4, 8)))
    for strange in (exchanging((family, 0), 0, None, [2]), exchanging((1, 0), 0, (1, 4), [1])):  # newer; the host's
        with pytest.raises(AssertionError, match="slow way"):
            device_array(strange(numbers(4, 8)))

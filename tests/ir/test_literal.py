"""Literals: what they hold, how it is packed (as ONNX packs it), when they are equal, and that nothing is copied."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.errors import InternalError
from argosy.ir import DTYPES, DType, Literal, dtype
from argosy.ir.literal import pack_bits, unpack_bits
from tests.ir.programs import literals

NUMERIC = [kind for kind in DTYPES.values() if kind.kind != "string"]
SUB_BYTE = [kind for kind in NUMERIC if kind.bits < 8]
ONNX_NAMES = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "float4_e2m1fn": "FLOAT4E2M1",
    "float6_e2m3fn": "FLOAT6E2M3",
    "float6_e3m2fn": "FLOAT6E3M2",
    "float8_e8m0fnu": "FLOAT8E8M0",
}


def onnx_type(kind: DType) -> int:
    name = ONNX_NAMES.get(kind.name) or kind.name.upper().replace("FLOAT8_", "FLOAT8").replace("_", "")
    return onnx.TensorProto.DataType.Value(name)


def some(kind: DType, count: int) -> Any:
    """Elements of every bit pattern that the type has, over and over."""
    patterns = np.arange(count * max(1, kind.numpy.itemsize), dtype=np.uint64)
    if kind.bits < 8:
        return unpack_bits(pack_bits((patterns % (1 << kind.bits)).astype(np.uint8), kind.bits), kind, count)
    if kind.kind == "bool":
        return patterns % 2 == 1
    return ((patterns * 37 + 11) % 251).astype(np.uint8).view(kind.numpy)


@pytest.mark.parametrize("kind", NUMERIC, ids=str)
@pytest.mark.parametrize("count", [0, 1, 5, 16])
def test_stored_bytes_are_those_of_onnx(kind: DType, count: int) -> None:
    values = some(kind, count)
    expected = onnx.numpy_helper.from_array(values)
    assert expected.data_type == onnx_type(kind)
    literal = Literal.of(values)
    assert literal.dtype is kind
    assert literal.stored.tobytes() == expected.raw_data
    assert literal.nbytes == kind.byte_size(count) == len(expected.raw_data)
    again = Literal.packed(kind, (count,), np.frombuffer(expected.raw_data, np.uint8))
    assert again == literal
    assert again.array().tobytes() == values.tobytes()
    theirs = onnx.numpy_helper.to_array(expected)
    assert theirs.dtype == again.array().dtype
    with np.errstate(all="ignore"):
        assert ((theirs == values) | (values != values)).all()  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("kind", SUB_BYTE, ids=str)
@given(data=st.data())
def test_packing_is_undone_by_unpacking(kind: DType, data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, (1 << kind.bits) - 1), max_size=20)), np.uint8)
    packed = pack_bits(codes, kind.bits)
    elements = unpack_bits(packed, kind, codes.size)
    assert elements.dtype == kind.numpy
    assert pack_bits(elements, kind.bits).tobytes() == packed.tobytes()
    stream = int.from_bytes(packed.tobytes(), "little")
    for index, code in enumerate(codes.tolist()):  # the first element is in the lowest bits
        assert stream >> (index * kind.bits) & ((1 << kind.bits) - 1) == code


@given(literals())
def test_every_literal_is_what_it_holds(literal: Literal) -> None:
    array = literal.array()
    assert array.shape == literal.shape
    assert array.dtype == literal.dtype.numpy
    assert literal.array() is array
    assert not array.flags.writeable
    if not literal.is_splat:
        again = Literal.of(array)
        assert again == literal
        assert hash(again) == hash(literal)
        assert again.digest == literal.digest


@pytest.mark.parametrize("kind", NUMERIC, ids=str)
def test_splats_hold_one_element(kind: DType) -> None:
    literal = Literal.splat(1, kind, (1 << 20, 1 << 20))
    assert literal.nbytes == kind.byte_size(1)
    assert literal.size == 1 << 40
    assert literal.item() == 1
    assert type(literal.item()) in (int, float, bool, complex)
    array = literal.array()
    assert array.strides == (0, 0)
    assert array[5, 7] == 1


def test_a_splat_is_not_the_dense_literal_of_the_same_value() -> None:
    splat, dense = Literal.splat(1.0, dtype("float32"), (2,)), Literal.of(np.ones(2, np.float32))
    assert splat != dense
    assert splat == Literal.splat(1, dtype("float32"), [2])


def test_the_digest_is_that_of_the_stored_bytes() -> None:
    values = np.arange(10, dtype=np.float32)
    assert Literal.of(values).digest == hashlib.sha256(values.tobytes()).hexdigest()
    assert Literal.of(values.reshape(2, 5)).digest == Literal.of(values).digest


def test_strings_are_told_apart_by_their_ends() -> None:
    first, second = (Literal.of(np.array(texts, object)) for texts in (["ab", "c"], ["a", "bc"]))
    assert first.digest != second.digest
    assert first != second
    assert Literal.of(np.array(["x", "yz"])).array().tolist() == ["x", "yz"]
    assert Literal.of(np.array(["\ud800", b"\xff"], object)).digest


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.zeros(2, np.float32), np.zeros(2, np.int32)),
        (np.zeros(2, np.float32), np.zeros((1, 2), np.float32)),
        (np.zeros(2, np.float32), np.full(2, -0.0, np.float32)),
        (np.zeros(2, np.float32), np.array([0, 1], np.float32)),
    ],
)
def test_literals_differ_by_type_shape_and_bits(left: Any, right: Any) -> None:
    assert Literal.of(left) != Literal.of(right)
    assert Literal.of(left) == Literal.of(left.copy())


def test_nan_is_equal_to_itself_bit_by_bit() -> None:
    assert Literal.of(np.array([np.nan])) == Literal.of(np.array([np.nan]))


# ---- no copies


def test_contiguous_arrays_are_kept_as_they_are() -> None:
    for values in (np.arange(12.0).reshape(3, 4), some(dtype("bfloat16"), 4), np.array(3)):
        literal = Literal.of(values)
        assert np.shares_memory(literal.stored, values)
        assert np.shares_memory(literal.array(), values)


@pytest.mark.parametrize("kind", [kind for kind in NUMERIC if kind.bits >= 8], ids=str)
def test_stored_bytes_are_mapped_not_copied(kind: DType, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(4) + some(kind, 16).tobytes())
    mapped = np.memmap(path, np.uint8, mode="r", offset=0)
    literal = Literal.packed(kind, (4, 4), mapped[4:])  # at any address, aligned or not
    assert np.shares_memory(literal.array(), mapped)
    assert literal.array().tobytes() == some(kind, 16).tobytes()
    assert literal.digest == hashlib.sha256(mapped[4:].tobytes()).hexdigest()


def test_what_is_not_contiguous_or_native_is_made_so() -> None:
    values = np.arange(12.0).reshape(3, 4).T
    assert np.array_equal(Literal.of(values).array(), values)
    foreign = np.arange(4, dtype=">i4")
    literal = Literal.of(foreign)
    assert literal.dtype is dtype("int32")
    assert literal.stored.tobytes() == np.arange(4, dtype="<i4").tobytes()


# ---- refusals


def test_the_wrong_number_of_bytes_is_refused() -> None:
    with pytest.raises(InternalError, match="7 bytes given for 2 elements of float32"):
        Literal.packed(dtype("float32"), (2,), np.zeros(7, np.uint8))
    with pytest.raises(InternalError, match="2 bytes given for 5 elements of int4"):
        Literal.packed(dtype("int4"), (5,), np.zeros(2, np.uint8))


def test_item_wants_one_value() -> None:
    assert Literal.of([[2.5]]).item() == 2.5
    assert Literal.of(np.array("text", object)).item() == "text"
    assert Literal.splat("text", dtype("string"), (3,)).item() == "text"
    with pytest.raises(InternalError, match="2 elements"):
        Literal.of([1, 2]).item()

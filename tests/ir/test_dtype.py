"""Element types against numpy, ml_dtypes and ONNX's own list."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.helper
import pytest

from argosy.errors import ModelError
from argosy.ir import DTYPES, DType, dtype, dtype_of

EVERY = pytest.mark.parametrize("kind", DTYPES.values(), ids=str)
NUMERIC = pytest.mark.parametrize("kind", [kind for kind in DTYPES.values() if kind.kind != "string"], ids=str)


def test_every_element_type_of_onnx_has_a_row() -> None:
    types = onnx.TensorProto.DataType.values()
    theirs = {np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)) for number in types if number}
    assert {kind.numpy for kind in DTYPES.values()} == theirs


@EVERY
def test_names_and_numpy_types_lead_back(kind: DType) -> None:
    assert dtype(kind.name) is kind
    assert dtype_of(kind.numpy) is kind
    assert str(kind) == repr(kind) == kind.name
    assert hash(kind) == hash(kind.name)


@NUMERIC
def test_bits_are_those_of_the_type(kind: DType) -> None:
    if kind.bits >= 8:
        assert kind.numpy.itemsize * 8 == kind.bits
    if kind.is_integer:
        info = ml_dtypes.iinfo(kind.numpy)  # type: ignore[no-untyped-call]
        assert info.bits == kind.bits
        assert (info.min < 0) == (kind.kind == "int")
    elif kind.is_float:
        assert ml_dtypes.finfo(kind.numpy).bits == kind.bits  # type: ignore[no-untyped-call]
    assert [kind.byte_size(n) for n in (0, 1, 8)] == [0, -(-kind.bits // 8), kind.bits]


@NUMERIC
def test_the_compute_type_holds_every_value(kind: DType) -> None:
    wide = kind.compute
    assert wide.compute is wide
    assert wide.kind == kind.kind
    assert wide.bits >= (32 if kind.is_float else 8)
    if kind.bits <= 16 and kind.kind != "bool":
        codes = np.arange(1 << min(kind.bits, 16), dtype=np.uint16 if kind.bits == 16 else np.uint8)
        values = codes.view(kind.numpy)
        with np.errstate(all="ignore"):
            back = values.astype(wide.numpy).astype(kind.numpy)
            same = (back == values) | (values != values)  # noqa: PLR0124 - NaN
        assert same.all()


def test_kinds() -> None:
    assert {kind.kind for kind in DTYPES.values()} == {"float", "int", "uint", "bool", "complex", "string"}
    assert dtype("bool").is_integer is False
    assert dtype("float8_e4m3fn").is_float


def test_texts_of_numpy_are_strings_and_byte_order_does_not_count() -> None:
    assert dtype_of(np.dtype("U5")) is dtype_of(np.dtype("S3")) is dtype("string")
    assert dtype_of(np.dtype(">f4")) is dtype("float32")


def test_other_types_are_refused() -> None:
    with pytest.raises(ModelError, match="unknown element type 'float31'"):
        dtype("float31")
    for foreign in ("datetime64[s]", "longdouble", "V4"):
        with pytest.raises(ModelError, match="has no element type of ours"):
            dtype_of(np.dtype(foreign))

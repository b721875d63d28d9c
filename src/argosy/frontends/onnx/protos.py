"""From the protobuf messages of the `onnx` package to our literals and types: the only reader of raw fields."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from argosy.errors import MissingExtraError, ModelError
from argosy.frontends.onnx.external_data import ExternalData
from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.dtype import DTYPES, INT64, STRING, Array, DType
from argosy.ir.literal import Literal, pack_bits
from argosy.ir.types import MAX_RANK, MapType, OptionalType, SequenceType, TensorType, Type

if TYPE_CHECKING:
    import onnx

__all__ = ["ELEMENT_TYPES", "element_type", "read_model", "read_sparse", "read_tensor", "read_type"]

log = logging.getLogger("argosy.onnx")

# TensorProto.DataType, in the order of the enum (onnx.proto).
ELEMENT_TYPES: Final[dict[int, DType]] = {
    number: DTYPES[name]
    for number, name in enumerate(
        (
            "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64",
            "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz",
            "float8_e5m2", "float8_e5m2fnuz", "uint4", "int4", "float4_e2m1fn", "float8_e8m0fnu", "uint2", "int2",
            "float6_e2m3fn", "float6_e3m2fn",
        ),
        start=1,
    )
}  # fmt: skip

_COMMON: Final = tuple(f"{number} = {ELEMENT_TYPES[number]}" for number in (1, 6, 7, 9, 10, 11))

_OTHER_FORMATS: Final = {
    b"version https://git-lfs": "this is a pointer of Git LFS: fetch the file itself with `git lfs pull`",
    b"PK\x03\x04": "this is a ZIP archive, such as PyTorch writes: export the model with torch.onnx.export",
    b"\x89HDF": "this is an HDF5 file, such as Keras writes: convert it with tf2onnx",
    b"\x1f\x8b": "this is a gzip archive: unpack it first",
    b"ORTM": "this is a model in ONNX Runtime's format: give the .onnx file that it was made from",
}

_EXPORT: Final = "give a whole .onnx file, as an exporter wrote it"
_LARGE: Final = 1 << 24
"""Bytes of a model's file from which on it is mapped, its large weights too."""
_DENSE_LIMIT: Final = 1 << 30
"""Bytes that a sparse tensor may have when it is written out."""

# Where TensorProto keeps values of a type that are not in raw_data.
_INT32_FIELD = frozenset(
    name for name, kind in DTYPES.items() if kind.bits <= 32 and name not in ("float32", "uint32", "string")
)


def element_type(number: int, where: str) -> DType:
    """The element type of a TensorProto.DataType number; raises ModelError for an unknown one."""
    found = ELEMENT_TYPES.get(number)
    if found is None:
        what = f"unknown element type number {number}" if number else "has no element type"
        hint = f"give it one of TensorProto.DataType, 1 to {max(ELEMENT_TYPES)}: {', '.join(_COMMON)}, …"
        raise ModelError(what, where=where, hint=hint)
    return found


def read_model(source: str | Path | bytes | Any) -> tuple[onnx.ModelProto, ExternalData, str]:
    """The model message, what its external tensors are read from, and a name for error messages.

    `source` is a path, bytes or a ModelProto. Raises ModelError for a file that is missing or no ONNX model.
    """
    try:
        import onnx  # noqa: PLC0415 - an optional extra
        from google.protobuf.message import DecodeError  # noqa: PLC0415

        from argosy.frontends.onnx.own_weights import without_weights  # noqa: PLC0415 - needs the package too
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "reading an ONNX model") from None
    if isinstance(source, onnx.ModelProto):
        if not source.HasField("graph"):
            raise ModelError("the model holds no graph", where="model", hint=_EXPORT)
        return source, ExternalData(None), "model"
    own: Array | None = None
    raw: bytes | memoryview
    if isinstance(source, (bytes, bytearray, memoryview)):
        raw, folder, name = bytes(source), None, "model"
    else:
        path = Path(source)
        folder, name = path.parent, str(path)
        raw, own = _contents(path)
    model = onnx.ModelProto()
    lean = without_weights(own.data) if own is not None else None
    try:
        model.ParseFromString(raw if lean is None else lean)
    except DecodeError:
        what = "this is not an ONNX model, or only a part of one: the protobuf message cannot be decoded"
        raise ModelError(what, where=name, hint=_other_format(raw) or _EXPORT) from None
    if not model.HasField("graph"):
        hint = _other_format(raw) or _EXPORT
        raise ModelError("this is not an ONNX model: it holds no graph", where=name, hint=hint)
    return model, ExternalData(folder, None if lean is None else own), name


def _contents(path: Path) -> tuple[bytes | memoryview, Array | None]:
    """The bytes of a file; a large one is mapped, and given as an array too."""
    try:
        if path.is_file() and path.stat().st_size >= _LARGE:
            own: Array = np.memmap(path, np.uint8, "r")
            return own.data, own
        return path.read_bytes(), None
    except FileNotFoundError:
        raise ModelError("no such file", where=str(path), hint="give the path of an .onnx file") from None
    except OSError as error:
        hint = "give the path of an .onnx file that you may read"
        raise ModelError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from None


def _other_format(raw: bytes | memoryview) -> str:
    """What a file is that is no ONNX model, for files that often take the place of one."""
    begin = bytes(raw[:64])
    for start, what in _OTHER_FORMATS.items():
        if begin.startswith(start):
            return what
    return "this is a TensorFlow Lite model: convert it with tf2onnx" if begin[4:8] == b"TFL3" else ""


def read_tensor(tensor: onnx.TensorProto, external: ExternalData, where: str) -> Literal:
    """A TensorProto as a literal; raises ModelError where its fields contradict each other."""
    if tensor.name and repr(tensor.name) not in where:
        where = f"{where}: tensor {tensor.name!r}"
    dtype = element_type(tensor.data_type, where)
    shape = tuple(tensor.dims)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"has a negative dim: {list(shape)}", where=where)
    _check_rank(len(shape), where)
    count = math.prod(shape)
    if dtype is STRING:
        return _read_strings(tensor, shape, count, where)
    size = dtype.byte_size(count)
    if tensor.data_location == 1:  # EXTERNAL
        return Literal.packed(dtype, shape, external.read({e.key: e.value for e in tensor.external_data}, size, where))
    if tensor.HasField("raw_data"):
        raw = np.frombuffer(tensor.raw_data, np.uint8)
        if raw.size != size:
            raise ModelError(f"raw_data holds {raw.size} bytes, {dtype}{list(shape)} needs {size}", where=where)
        return Literal.packed(dtype, shape, raw)
    return Literal.packed(dtype, shape, _read_fields(tensor, dtype, count, size, where))


def _check_rank(rank: int, where: str) -> None:
    if rank > MAX_RANK:
        raise ModelError(f"has {rank} axes; a tensor may have {MAX_RANK}", where=where)


def read_sparse(sparse: onnx.SparseTensorProto, external: ExternalData, where: str) -> Array:
    """A SparseTensorProto as an array.

    Its indices are flat (1-D) or one row of coordinates for each value (onnx.proto). Raises ModelError where they
    do not fit, and for a tensor that a small file could claim to be of any size.
    """
    values = read_tensor(sparse.values, external, where)
    indices = read_tensor(sparse.indices, external, where)
    shape = tuple(sparse.dims)
    _check_rank(len(shape), where)
    if any(dim < 0 for dim in shape):
        raise ModelError(f"has a negative dim in {list(shape)}", where=where)
    if math.prod(shape) * values.dtype.numpy.itemsize > _DENSE_LIMIT:
        raise ModelError(f"is too large for a sparse tensor: {values.dtype}{list(shape)}", where=where)
    if len(values.shape) != 1 or indices.dtype is not INT64 or indices.shape not in _index_shapes(values.size, shape):
        raise ModelError(
            f"holds values {values.dtype}{list(values.shape)} and indices {indices.dtype}{list(indices.shape)}, "
            f"expected one value and int64 coordinates in {list(shape)} for each",
            where=where,
        )
    dense = np.zeros(shape, values.dtype.numpy)
    at = indices.array()
    try:
        dense.reshape(-1)[at if at.ndim == 1 else np.ravel_multi_index(tuple(at.T), shape)] = values.array()
    except (IndexError, ValueError):
        raise ModelError(f"the indices do not fit its dims {list(shape)}", where=where) from None
    return dense


def _index_shapes(count: int, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return ((count,), (count, len(shape)))


def _read_strings(tensor: onnx.TensorProto, shape: tuple[int, ...], count: int, where: str) -> Literal:
    if len(tensor.string_data) != count:
        raise ModelError(
            f"string_data holds {len(tensor.string_data)} values, the shape {list(shape)} needs {count}", where=where
        )
    try:
        texts = [text.decode() for text in tensor.string_data]
    except UnicodeDecodeError as error:
        raise ModelError(f"string_data is not UTF-8: {error.reason}", where=where) from None
    values = np.empty(count, object)
    values[:] = texts
    return Literal.of(values.reshape(shape))


def _read_fields(tensor: onnx.TensorProto, dtype: DType, count: int, size: int, where: str) -> Array:
    """Values that lie in a typed field, as stored bytes (onnx.proto, comments of TensorProto)."""
    field: Any
    kind: Any
    if dtype.name in ("float32", "complex64"):
        field, kind = tensor.float_data, np.float32
    elif dtype.name in ("float64", "complex128"):
        field, kind = tensor.double_data, np.float64
    elif dtype.name == "int64":
        field, kind = tensor.int64_data, np.int64
    elif dtype.name in ("uint32", "uint64"):
        field, kind = tensor.uint64_data, np.uint64
    elif dtype.name in _INT32_FIELD:
        field, kind = tensor.int32_data, np.int32
    else:
        raise ModelError(f"holds no data of type {dtype}", where=where)
    values = np.fromiter(field, kind, len(field))
    if dtype.name in ("float32", "float64", "int64", "complex64", "complex128"):
        raw = values.view(np.uint8)
    elif dtype.is_packed:
        # Each entry holds one byte of packed values, of 6-bit types one value.
        raw = pack_bits(values.astype(np.uint8), 6) if dtype.bits == 6 else values.astype(np.uint8)
    else:
        bits = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[dtype.bits]
        raw = values.astype(np.int64 if kind is np.int32 else kind).astype(bits).view(np.uint8)
    if raw.size != size:
        raise ModelError(f"holds {len(field)} values, {dtype}{list(tensor.dims)} needs {count}", where=where)
    return raw


def read_type(kind: onnx.TypeProto, name: str, where: str) -> Type:
    """A TypeProto as a type. Unnamed dims of value `name` become the symbols `<name>_d<axis>`."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        element = element_type(tensor.elem_type, where)
        if not tensor.HasField("shape"):
            return TensorType(element, None)
        _check_rank(len(tensor.shape.dim), where)
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.dim_value < -1:
                log.warning("%s: axis %d has the size %d; taken as unknown", where, axis, dim.dim_value)
        return TensorType(
            element, tuple(_read_dim(dim, f"{name}_d{axis}") for axis, dim in enumerate(tensor.shape.dim))
        )
    if which == "sequence_type":
        return SequenceType(read_type(kind.sequence_type.elem_type, name, where))
    if which == "optional_type":
        return OptionalType(read_type(kind.optional_type.elem_type, name, where))
    if which == "map_type":
        return MapType(element_type(kind.map_type.key_type, where), read_type(kind.map_type.value_type, name, where))
    raise ModelError(f"{name!r} has no type", where=where, hint="give the value a tensor type in the model")


def _read_dim(dim: onnx.TensorShapeProto.Dimension, unnamed: str) -> DimLike:
    which = dim.WhichOneof("value")
    if which == "dim_value" and dim.dim_value >= 0:
        return int(dim.dim_value)
    if which == "dim_param" and dim.dim_param not in ("", "-1", "None") and not dim.dim_param.startswith("?"):
        return symbol_dim(Symbol(dim.dim_param))
    # No value, a negative number or one of the words that exporters write for "unknown".
    return symbol_dim(Symbol(unnamed))

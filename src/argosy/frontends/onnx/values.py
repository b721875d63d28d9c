"""Reads values from ONNX messages: the .pb files in which ONNX keeps test data."""

from __future__ import annotations

from typing import Any

from argosy.errors import MissingExtraError, UsageError
from argosy.frontends.onnx.external_data import ExternalData
from argosy.frontends.onnx.protos import read_tensor
from argosy.ir.types import MapType, OptionalType, SequenceType, Type

__all__ = ["read_value"]


def read_value(raw: bytes, kind: Type, where: str) -> Any:
    """The value of type `kind` in a serialised TensorProto, SequenceProto or OptionalProto.

    Tensors are numpy arrays, sequences lists, an absent optional None. Raises UsageError where the bytes are no such
    message, ModelError where the message contradicts itself.
    """
    try:
        import onnx  # noqa: PLC0415 - an optional extra
        from google.protobuf.message import DecodeError  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "reading a .pb file") from None
    message: Any = onnx.TensorProto()
    if isinstance(kind, SequenceType):
        message = onnx.SequenceProto()
    elif isinstance(kind, OptionalType):
        message = onnx.OptionalProto()
    elif isinstance(kind, MapType):
        raise UsageError("maps are not read from files", where=where)
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise UsageError(f"this is no {type(message).__name__}", where=where) from None
    return _value(message, where)


def _value(message: Any, where: str) -> Any:
    kind = type(message).__name__
    if kind == "TensorProto":
        return read_tensor(message, ExternalData(None), where).array()
    if kind == "SequenceProto":
        elements = message.tensor_values or message.sequence_values or message.optional_values
        return [_value(element, where) for element in elements]
    if message.HasField("tensor_value"):
        return _value(message.tensor_value, where)
    if message.HasField("sequence_value"):
        return _value(message.sequence_value, where)
    return None

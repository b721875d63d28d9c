"""The weights inside a model's own file, mapped: a message without them, which refers to them as external data.

A protobuf message keeps a copy of every tensor in it, and reading the file is another. For a large file the bytes of
its large initializers are left out of what is parsed, and each of these tensors is told to lie in an external file:
the model's own. Only lengths are read here; whatever looks odd is left to the parser, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import onnx

from argosy.frontends.onnx.external_data import OWN_FILE

__all__ = ["without_weights"]

_LEAST_TENSOR: Final = 1 << 16
"""Bytes of a tensor that is worth mapping."""
_GRAPH: Final = onnx.ModelProto.GRAPH_FIELD_NUMBER
_INITIALIZER: Final = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
_RAW_DATA: Final = onnx.TensorProto.RAW_DATA_FIELD_NUMBER
_ELSEWHERE: Final = (onnx.TensorProto.EXTERNAL_DATA_FIELD_NUMBER, onnx.TensorProto.DATA_LOCATION_FIELD_NUMBER)
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5


class _OddError(Exception):
    """The bytes are no message, or not one that exporters write."""


def without_weights(file: memoryview) -> bytes | None:
    """The model's message without the bytes of its large initializers; None where that is not possible."""
    parts: list[bytes | memoryview] = []
    graphs = 0
    try:
        for number, start, body, end in _fields(file, 0, len(file), _GRAPH):
            if number != _GRAPH:
                parts.append(file[start:end])
                continue
            graphs += 1
            graph = b"".join(_graph(file, body, end))
            parts += [_head(_GRAPH, len(graph)), graph]
    except _OddError:
        return None
    return b"".join(parts) if graphs == 1 else None


def _graph(file: memoryview, begin: int, end: int) -> Iterator[bytes | memoryview]:
    """The pieces of a graph."""
    for number, start, body, after in _fields(file, begin, end, _INITIALIZER):
        tensor = _tensor(file, body, after) if number == _INITIALIZER and after - body >= _LEAST_TENSOR else None
        if tensor is None:
            yield file[start:after]
        else:
            yield _head(_INITIALIZER, len(tensor))
            yield tensor


def _tensor(file: memoryview, begin: int, end: int) -> bytes | None:
    """A tensor that refers to its bytes; None where it has none that are worth it, or says already where they are."""
    parts: list[bytes | memoryview] = []
    place: tuple[int, int] | None = None
    for number, start, body, after in _fields(file, begin, end, _RAW_DATA):
        if number in _ELSEWHERE or (number == _RAW_DATA and place is not None):
            return None
        if number == _RAW_DATA:
            place = body, after
        else:
            parts.append(file[start:after])
    if place is None or place[1] - place[0] < _LEAST_TENSOR:
        return None
    moved = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", OWN_FILE), ("offset", place[0]), ("length", place[1] - place[0])):
        moved.external_data.add(key=key, value=str(value))
    return b"".join((*parts, moved.SerializeToString(deterministic=True)))


def _fields(file: memoryview, at: int, end: int, *lengthy: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, where it starts, where its content starts, where it ends.

    Those with a number among `lengthy` must have a length.
    """
    while at < end:
        start = at
        key, at = _varint(file, at, end)
        number, wire = key >> 3, key & 7
        body = at
        if wire == _VARINT:
            _, at = _varint(file, at, end)
        elif wire == _LENGTH:
            size, body = _varint(file, at, end)
            at = body + size
        elif wire in (_FIXED_64, _FIXED_32):
            at += 8 if wire == _FIXED_64 else 4
        else:
            raise _OddError
        # Graphs, tensors and their bytes have lengths; what claims to be one and has none is for the parser.
        if at > end or (number in lengthy and wire != _LENGTH):
            raise _OddError
        yield number, start, body, at


def _varint(file: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number and where it ends."""
    value = 0
    for place in range(at, min(at + 10, end)):
        byte = file[place]
        value |= (byte & 127) << 7 * (place - at)
        if byte < 128:
            return value, place + 1
    raise _OddError


def _head(number: int, size: int) -> bytes:
    """The beginning of a field with content of `size` bytes."""
    return _encoded(number << 3 | _LENGTH) + _encoded(size)


def _encoded(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)

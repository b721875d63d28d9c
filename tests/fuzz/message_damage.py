"""Damage to any protobuf message: fields dropped, doubled, moved, set to values from elsewhere or to extremes.

It knows the schema only through protobuf's descriptors, so every field that ONNX has or will have is reached.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

__all__ = ["EXTREME_INTS", "damage_message"]

EXTREME_INTS: Final = (
    *(0, 1, -1, 2, 3, 7, 16, 29, 63, 64, 255, -2, -128, 1000),
    *((1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) + 1, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)),
)
_EXTREMES: Final[dict[str, tuple[Any, ...]]] = {
    "int": EXTREME_INTS,
    "float": (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan")),
    "text": ("", "x", "y", "N", "a/b", "../x", "If", "Add", "ai.onnx.ml", "com.microsoft", "é\0", "n" * 3000, "-1"),
    "bytes": (b"", b"\0", b"\xff\xfe", b"SAME_UPPER", b"linear", b"x" * 3000, b"i,ij->j", b"...", b"\xc3"),
}

Place = tuple[Message, FieldDescriptor]


def damage_message(root: Message, rng: random.Random) -> None:
    """Change one field, somewhere in the tree of `root`."""
    places = list(_places(root))
    if not places:
        return
    message, field = rng.choice(places)
    if rng.random() < 0.1:
        field = rng.choice(message.DESCRIPTOR.fields)
    if field.is_repeated:
        _damage_list(message, field, places, rng)
    elif field.message_type is not None:
        _damage_child(message, field, places, rng)
    else:
        _damage_scalar(message, field, places, rng)


def _places(root: Message) -> Iterator[Place]:
    """Every field that is set, in the whole tree."""
    for field, value in root.ListFields():
        yield root, field
        if field.message_type is not None:
            for child in value if field.is_repeated else (value,):
                yield from _places(child)


def _damage_scalar(message: Message, field: FieldDescriptor, places: list[Place], rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        message.ClearField(field.name)
    elif kind <= 2:
        _set(message, field, _elsewhere(field, places, rng))
    elif kind == 3:
        _set(message, field, _near(getattr(message, field.name), rng))
    else:
        _set(message, field, rng.choice(_EXTREMES[_kind(field)]))


def _damage_child(message: Message, field: FieldDescriptor, places: list[Place], rng: random.Random) -> None:
    others = [child for child in _messages(places) if child.DESCRIPTOR is field.message_type]
    if rng.random() < 0.4 or not others:
        message.ClearField(field.name)
    else:
        _replace(getattr(message, field.name), rng.choice(others))


def _damage_list(message: Message, field: FieldDescriptor, places: list[Place], rng: random.Random) -> None:
    items = list(getattr(message, field.name))
    nested = field.message_type is not None
    if nested:
        alike: list[Any] = [child for child in _messages(places) if child.DESCRIPTOR is field.message_type]
    else:
        alike = [_elsewhere(field, places, rng), rng.choice(_EXTREMES[_kind(field)])]
    at = rng.randrange(len(items) + 1)
    kind = rng.randrange(8)
    if kind == 0 and items:
        del items[min(at, len(items) - 1)]
    elif kind == 1 and items:
        items.insert(at, rng.choice(items))
    elif kind == 2:
        rng.shuffle(items)
    elif kind == 3:
        items = items[:at]
    elif kind == 4 and alike:
        items.insert(at, rng.choice(alike))
    elif kind == 5 and items and rng.random() < 0.2:
        items *= 40
    elif items and alike:
        items[min(at, len(items) - 1)] = rng.choice(alike)
    _assign(message, field, items)


def _assign(message: Message, field: FieldDescriptor, items: list[Any]) -> None:
    if field.message_type is not None:
        kept = [_copy(item) for item in items]
        message.ClearField(field.name)
        getattr(message, field.name).extend(kept)
    else:
        message.ClearField(field.name)
        for item in items:
            try:
                getattr(message, field.name).append(item)
            except (ValueError, TypeError):
                continue  # out of the field's range


def _messages(places: list[Place]) -> list[Message]:
    found: list[Message] = []
    for message, field in places:
        if field.message_type is not None:
            value = getattr(message, field.name)
            found.extend(value if field.is_repeated else (value,))
    return found


def _elsewhere(field: FieldDescriptor, places: list[Place], rng: random.Random) -> Any:
    """A value of the same kind that another field has."""
    kind = _kind(field)
    for _ in range(8):
        message, other = rng.choice(places)
        if other.message_type is None and _kind(other) == kind:
            value = getattr(message, other.name)
            if not other.is_repeated:
                return value
            if len(value):
                return rng.choice(value)
    return rng.choice(_EXTREMES[kind])


def _near(value: Any, rng: random.Random) -> Any:
    """A value that differs a little."""
    if isinstance(value, int):
        return value + rng.choice((-1, 1, 2, -3))
    if isinstance(value, float):
        return value * rng.choice((-1.0, 2.0, 1e20))
    if not value:
        return value
    at = rng.randrange(len(value))
    return rng.choice((value[:at], value[at:], value + value[:at], value[:at] + value[at + 1 :]))


def _kind(field: FieldDescriptor) -> str:
    if field.type == FieldDescriptor.TYPE_STRING:
        return "text"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "bytes"
    return "float" if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE) else "int"


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    try:
        setattr(message, field.name, value)
    except (ValueError, TypeError):
        message.ClearField(field.name)  # out of the field's range


def _copy(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _replace(message: Message, by: Message) -> None:
    """Set `message` to `by`, which may lie inside it or around it."""
    made = _copy(by)
    message.Clear()
    message.CopyFrom(made)

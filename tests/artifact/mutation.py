"""Seeded damage: to bytes, and to the tree of values that bytes encode."""

from __future__ import annotations

import copy
import random
from typing import Any

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
_VALUES: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 2, 63, 64, 65, 1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1, -(1 << 63), 0.5),
    *(
        "",
        "x",
        "N",
        "../x",
        "a\0b",
        "x" * 70_000,
        "nan",
        "float32",
        "0" * 64,
        "code/cpu.so",
        b"",
        b"\x00",
        b"\xff" * 5000,
    ),
    *([], {}, [0], [[0, 0]], [-1, 0], {"kind": "module", "index": 1}, {"kind": "tuple"}, {"kind": "splat"}, {"a": 1}),
)


def damage_bytes(data: bytes, rng: random.Random) -> bytes:
    """`data` after one to three small accidents."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        size = len(changed)
        at, length = rng.randrange(size + 1), rng.choice((1, 1, 2, 4, 8, 30, 100, 5000))
        kind = rng.randrange(8)
        if kind == 0 and at < size:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < size:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(_NUMBERS) & ((1 << 8 * width) - 1)
            changed[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 3:
            del changed[at : at + length]
        elif kind == 4:
            changed[at:at] = rng.randbytes(length)
        elif kind == 5:
            changed[at:at] = changed[at : at + length]
        elif kind == 6:
            start = rng.randrange(size + 1)
            changed[at : at + length] = changed[start : start + length]
        else:
            del changed[at:]
    return bytes(changed)


def damage_tree(tree: Any, rng: random.Random) -> Any:
    """A copy of a tree of dicts, lists and leaves with one or two nodes changed."""
    changed = copy.deepcopy(tree)
    for _ in range(rng.randint(1, 2)):
        places = list(_places(changed))
        if not places:
            break
        parent, key = rng.choice(places)
        kind = rng.randrange(8)
        alike = [value for value in _VALUES if type(value) is type(parent[key])]
        if kind == 0:
            parent[key] = copy.deepcopy(rng.choice(_VALUES))
        elif kind == 1 and alike:
            parent[key] = copy.deepcopy(rng.choice(alike))
        elif kind <= 4:  # a value from elsewhere, most often of the same type: it decodes, and then breaks a rule
            others = [other[there] for other, there in places]
            same = [value for value in others if type(value) is type(parent[key])]
            parent[key] = copy.deepcopy(rng.choice(others if kind == 4 else same))
        elif kind == 5:
            del parent[key]
        elif kind == 6:
            if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            else:
                parent[rng.choice(("x", "kind", "", "novelty"))] = copy.deepcopy(parent[key])
        elif isinstance(parent[key], int):
            parent[key] += rng.choice((-1, 1))
        elif isinstance(parent[key], list):
            rng.shuffle(parent[key])
        else:
            parent[key] = copy.deepcopy(rng.choice(_VALUES))
    return changed


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a tree."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    found = [(node, key) for key in keys]
    for key in keys:
        found += _places(node[key])
    return found

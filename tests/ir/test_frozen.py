"""Everything in the IR that travels is frozen, small and compared as it should be."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from typing import Any

import msgspec
import numpy as np
import pytest

import argosy.ir
from argosy.ir import Builder, Formula, Literal, Symbol, TensorType, dtype, symbol_dim
from argosy.ir.op import OPS


def classes() -> list[type[Any]]:
    found = {
        member
        for entry in pkgutil.iter_modules(argosy.ir.__path__)
        for _, member in inspect.getmembers(importlib.import_module(f"argosy.ir.{entry.name}"), inspect.isclass)
        if (dataclasses.is_dataclass(member) or issubclass(member, msgspec.Struct))
        and member.__module__.startswith("argosy.ir")
    }
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_classes_of_the_ir_are_frozen_and_have_slots(cls: type[Any]) -> None:
    if issubclass(cls, msgspec.Struct):
        assert cls.__struct_config__.frozen
        return
    assert cls.__dataclass_params__.frozen
    assert "__slots__" in vars(cls)


@pytest.mark.parametrize("name", sorted(name for name, _ in OPS.items()))
def test_ops_are_frozen_dataclasses_with_slots(name: str) -> None:
    cls: Any = OPS.get(name)
    assert cls.__dataclass_params__.frozen
    assert cls.name == name
    assert cls.version >= 1
    assert "__slots__" in vars(cls)
    assert not [entry for base in cls.__mro__[:-1] for entry in [base] if "__slots__" not in vars(base)], "a __dict__"


def test_nothing_can_be_set() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N"])
    module = b.module({"x": x})
    things: list[tuple[Any, str]] = [
        (x, "index"),
        (x.instruction, "op"),
        (x.type, "dtype"),
        (x.shape[0], "terms"),
        (module, "name"),
        (Formula.of("add"), "arity"),
        (Symbol("N"), "lower"),
        (dtype("int8"), "bits"),
    ]
    for thing, field in things:
        with pytest.raises(AttributeError):  # of which a dataclass raises a kind of its own
            setattr(thing, field, None)


def test_values_are_equal_by_place_and_instructions_by_identity() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    y, z = b.pointwise("neg", x), b.pointwise("neg", x)
    assert y == y.instruction.result()
    assert y != z
    assert y.instruction != z.instruction
    assert len({y, y.instruction.result(), z}) == 2


def test_arrays_of_literals_cannot_be_written() -> None:
    literal = Literal.of(np.arange(4))
    with pytest.raises(ValueError, match="read-only"):
        literal.array()[0] = 1


def test_types_travel_between_processes() -> None:
    n = symbol_dim(Symbol("N", 1, 4))
    for thing in (TensorType(dtype("bfloat16"), (n, 2 * n + 1)), Formula.trace(lambda x: x + 1, 1), n):
        assert pickle.loads(pickle.dumps(thing)) == thing  # noqa: S301 - made here
        assert copy.deepcopy(thing) == thing

"""Faults that tests plant in a compiler, and models with one place where a fault shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from argosy.ir.builder import Builder
from argosy.ir.module import Instruction, Module, Value
from argosy.options import CompileOptions
from argosy.passes.manager import PassContext, Phase
from argosy.rewrite.rebuild import transform
from argosy.targets.base import Target
from tests.targets.mirror import MirrorTarget

__all__ = [
    "FLOAT",
    "ModelBuilder",
    "array",
    "is_maximum",
    "plant",
    "wrong_maximum",
    "wrong_maximum_in",
    "wrong_maximum_of_tanh",
]

FLOAT = TensorProto.FLOAT


@dataclass(frozen=True, slots=True)
class _Planted:
    """The pass that a fault is in."""

    change: Callable[[Module], Module]
    name: str = "planted"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module, spoilt."""
        return self.change(module)


def plant(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Module], Module], target: type[Target] = MirrorTarget
) -> None:
    """Let `change` have every module before the passes of `target`."""
    real = target.pipeline

    def pipeline(self: Any, options: CompileOptions) -> Sequence[Phase]:
        return (Phase("planted", (_Planted(change),)), *real(self, options))

    monkeypatch.setattr(target, "pipeline", pipeline)


def is_maximum(instruction: Instruction) -> bool:
    """Whether an instruction is a maximum along axes."""
    return instruction.op.name == "reduce" and instruction.op.attributes()["kind"] == "max"


def wrong_maximum(module: Module) -> Module:
    """Every maximum along axes is a minimum."""
    return _spoilt(module, is_maximum)


def wrong_maximum_of_tanh(module: Module) -> Module:
    """A maximum of a tanh is a minimum: a fault that takes two nodes."""

    def hit(instruction: Instruction) -> bool:
        operand = instruction.operands[0] if instruction.operands else None
        return is_maximum(instruction) and operand is not None and "tanh" in str(operand.instruction.op.attributes())

    return _spoilt(module, hit)


def wrong_maximum_in(kind: str) -> Callable[[Module], Module]:
    """A fault of every maximum along axes that is in the body of an op `kind`, and of no other."""

    def change(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
        op: Any = instruction.op
        if op.name != kind:
            return None
        bodies = {name: wrong_maximum(value) for name, value in op.attributes().items() if isinstance(value, Module)}
        return build.add_all(dataclasses.replace(op, **bodies), *instruction.operands)

    return lambda module: transform(module, lambda: change)


def _spoilt(module: Module, hit: Callable[[Instruction], bool]) -> Module:
    def change(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
        if not hit(instruction):
            return None
        op: Any = instruction.op
        return build.add_all(dataclasses.replace(op, kind="min"), *instruction.operands)

    return transform(module, lambda: change)


def array(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Numbers from -1 to 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


class ModelBuilder:
    """Nodes one after another; the last value is what the next one reads."""

    def __init__(self, *dims: int | str, prefix: str = "v") -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.inputs = [helper.make_tensor_value_info("x", FLOAT, dims)]
        self.initializers: dict[str, Any] = {}
        self.last = "x"

    def add(self, op: str, *more: str, name: str = "", **attributes: Any) -> str:
        """A node over the last value and `more`; the name of its result."""
        return self.add_over(op, [self.last, *more], name=name, **attributes)

    def add_over(self, op: str, operands: Sequence[str], *, name: str = "", **attributes: Any) -> str:
        """A node over `operands`; the name of its result."""
        self.last = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [self.last], name=name, **attributes))
        return self.last

    def weight(self, name: str, value: Any) -> str:
        """An initializer, which many nodes may read."""
        self.initializers[name] = value
        return name

    def chain(self, count: int, size: int = 8) -> None:
        """Add `count` nodes over [.., size] that share a matrix and a vector."""
        matrix, vector = self.weight("w", array(size, size)), self.weight("b", array(size, seed=1))
        for index in range(count):
            if index % 3 == 2:
                self.add("Tanh")
            else:
                self.add("MatMul" if index % 3 == 0 else "Add", matrix if index % 3 == 0 else vector)

    def model(self, *outputs: str, kind: int = FLOAT) -> onnx.ModelProto:
        """The model with these outputs, or the last value."""
        infos = [helper.make_tensor_value_info(name, kind, None) for name in outputs or (self.last,)]
        weights = [numpy_helper.from_array(value, name) for name, value in self.initializers.items()]
        graph = helper.make_graph(self.nodes, "planted", self.inputs, infos, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

"""A node with valid inputs for every op of ai.onnx, taken from ONNX's backend suite, or written where it has none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx import NodeProto, helper

from tests.conformance.cases import load_cases
from tests.properties.element_types.kinds import Kind

__all__ = ["BODIES", "NEWEST", "Sample", "few", "samples", "schemas"]

NEWEST: Final = onnx.defs.onnx_opset_version()
BODIES: Final = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Ops with graphs as attributes: their types are tested by hand."""
_GRAPH: Final = 5
_X: Final = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) / 2
_WRITTEN: Final[tuple[tuple[str, list[Any], dict[str, Any]], ...]] = (
    ("GlobalLpPool", [_X], {}),
    ("MaxRoiPool", [_X, np.array([[0, 0, 0, 3, 3]], np.float32)], {"pooled_shape": [2, 2]}),
    ("Multinomial", [np.log(np.full((2, 3), 1 / 3, np.float32))], {"sample_size": 4, "seed": 1.0}),
    ("RandomNormal", [], {"shape": [2, 3], "seed": 1.0}),
    ("RandomUniform", [], {"shape": [2, 3], "seed": 1.0}),
    ("RandomNormalLike", [_X], {"seed": 1.0, "dtype": 1}),
    ("RandomUniformLike", [_X], {"seed": 1.0, "dtype": 1}),
    ("Optional", [_X], {}),
    ("SequenceConstruct", [_X, _X + 1], {}),
    ("SequenceEmpty", [], {}),
    ("SequenceInsert", [[_X], _X + 1, np.array(0)], {}),
    ("SequenceAt", [[_X, _X + 1], np.array(-1)], {}),
    ("SequenceErase", [[_X, _X + 1], np.array(0)], {}),
    ("SequenceLength", [[_X, _X + 1]], {}),
    ("ConcatFromSequence", [[_X, _X + 1]], {"axis": 1}),
    ("SplitToSequence", [_X, np.array([1, 3])], {"axis": 2}),
    ("Identity", [[_X, _X + 1]], {}),
    ("OptionalGetElement", [[_X, _X + 1]], {}),
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A node of the newest opset, and a value (array, list, None) for each of its inputs."""

    name: str
    node: NodeProto
    values: tuple[Any, ...]

    @property
    def schema(self) -> onnx.defs.OpSchema:
        """What ONNX says of the op."""
        return schemas()[self.node.op_type]

    def variable(self, position: int) -> str:
        """The type variable of an input, or its type where that is fixed."""
        return str(self.schema.inputs[min(position, len(self.schema.inputs) - 1)].type_str)

    def result(self, position: int) -> str:
        """The same of an output."""
        return str(self.schema.outputs[min(position, len(self.schema.outputs) - 1)].type_str)

    @property
    def kinds(self) -> tuple[Kind | None, ...]:
        """The types of the values."""
        return tuple(None if value is None else Kind.of_value(value) for value in self.values)

    @property
    def bound(self) -> frozenset[str]:
        """The type variables that an input has."""
        return frozenset(self.variable(index) for index, value in enumerate(self.values) if value is not None)


@cache
def schemas() -> dict[str, onnx.defs.OpSchema]:
    """Every op of ai.onnx in its newest version."""
    found = (schema for schema in onnx.defs.get_all_schemas() if not schema.domain and not schema.deprecated)
    return {schema.name: schema for schema in found}


@cache
def samples() -> dict[str, tuple[Sample, ...]]:
    """Every sample of each op, the smallest first."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in (*_of_suite(), *_written()):
        found[sample.node.op_type].append(sample)
    return {
        op: tuple(sorted(every, key=lambda one: (len(one.bound), len(one.node.attribute), one.name)))
        for op, every in sorted(found.items())
    }


def few(every: Sequence[Sample]) -> list[Sample]:
    """Some samples of an op: the smallest, the largest, and one for every type variable that an input can have."""
    picked = {one.name: one for one in (every[0], every[-1])}
    for variable in sorted({name for one in every for name in one.bound}):
        if not any(variable in one.bound for one in picked.values()):
            first = next(one for one in every if variable in one.bound)
            picked[first.name] = first
    return list(picked.values())


def _written() -> Iterator[Sample]:
    for op, values, attributes in _WRITTEN:
        names = [f"x{index}" for index in range(len(values))]
        yield Sample(f"written_{op}", helper.make_node(op, names, ["y"], **attributes), tuple(values))


def _of_suite() -> Iterator[Sample]:
    for case in load_cases(("node",)):
        model, sets = case.read()
        graph = model.graph
        if len(graph.node) != 1 or graph.initializer or model.functions:
            continue
        node = graph.node[0]
        schema = schemas().get(node.op_type)
        opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
        if node.domain or schema is None or opset < schema.since_version:
            continue
        if any(attribute.type == _GRAPH for attribute in node.attribute):
            continue
        inputs = sets[0].inputs
        yield Sample(case.name, node, tuple(inputs[name] if name else None for name in node.input))

"""Models of one node: made, imported and run on ref, for the tests of the handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program
from argosy.ir.types import TensorType

__all__ = ["NEWEST", "model", "program", "run"]

Array = NDArray[Any]
NEWEST = onnx.defs.onnx_opset_version()


def model(
    op: str,
    inputs: Sequence[Array | None],
    *,
    opset: int = NEWEST,
    domain: str = "",
    outputs: Sequence[str] = ("y",),
    constant: Sequence[int] = (),
    shapes: Sequence[Sequence[int | str]] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node `op` whose inputs x0, x1, … have the types and shapes of the arrays (None is absent).

    `constant` lists the inputs that become initializers; `shapes` gives the graph inputs other, perhaps
    symbolic, dims. Output types are left open, so that the importer's word stands; an output "" is absent.
    An underscore behind the name of an attribute tells it apart from a parameter of ours (`opset_`).
    """
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    given = {name.rstrip("_"): value for name, value in attributes.items()}
    node = helper.make_node(op, names, list(outputs), domain=domain, **given)
    values, initializers = [], []
    for index, (name, value) in enumerate(zip(names, inputs, strict=True)):
        if value is None:
            continue
        if index in constant:
            initializers.append(onnx.numpy_helper.from_array(value, name))
            continue
        element = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
        values.append(helper.make_tensor_value_info(name, element, shapes[index] if shapes else value.shape))
    graph = helper.make_graph(
        [node], "one_node", values, [onnx.ValueInfoProto(name=name) for name in outputs if name], initializers
    )
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets)


def program(op: str, inputs: Sequence[Array | None], **options: Any) -> Program:
    """The imported model of `model(…)`."""
    return load(model(op, inputs, **options))


def run(op: str, *inputs: Array | None, **options: Any) -> Any:
    """The node's output for `inputs`, or the list of its outputs where `outputs` names several.

    The inferred type must agree with each result.
    """
    made = program(op, inputs, **options)
    constant = options.get("constant", ())
    feeds = [value for index, value in enumerate(inputs) if value is not None and index not in constant]
    results = [np.asarray(value) for value in Interpreter(made.main).run(feeds, Env())]
    for kind, result in zip(made.outputs.values(), results, strict=True):
        assert isinstance(kind, TensorType)
        assert kind.dtype.numpy == result.dtype
        assert kind.dims is None or len(kind.dims) == result.ndim
    return results if "outputs" in options else results[0]

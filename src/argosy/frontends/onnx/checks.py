"""Checks of shapes that handlers share: of inputs against what an op takes, of subgraphs against what they declare."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from argosy.errors import ModelError
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.protos import element_type
from argosy.ir.dim import equal
from argosy.ir.module import Value
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.operands import shape_text

if TYPE_CHECKING:
    import onnx

__all__ = ["check_channels", "check_declared", "check_dims", "check_output"]

log = logging.getLogger("argosy.onnx")


def _fits(value: Value, dims: Dims) -> bool:
    """Whether the value may have these dims: the rank is right and no dim is known to differ."""
    return value.rank == len(dims) and not any(
        equal(found, dim) is False for found, dim in zip(value.shape, dims, strict=True)
    )


def check_dims(node: Node, name: str, value: Value, *allowed: Dims) -> None:
    """Raise ModelError where the value can have none of the shapes `allowed`."""
    if not any(_fits(value, dims) for dims in allowed):
        texts = dict.fromkeys(map(shape_text, allowed))
        node.fail(f"{name} is {value.type}, expected {' or '.join(texts)}")


def check_channels(node: Node, x: Value, parameters: dict[str, Value]) -> None:
    """Raise ModelError where a parameter, by name, has neither one element nor one for each channel (axis 1) of `x`."""
    for name, value in parameters.items():
        if x.tensor.dims is not None and x.rank > 1 and value.tensor.dims is not None:
            check_dims(node, name, value, (x.shape[1],), (1,))


def check_declared(entries: Iterable[onnx.ValueInfoProto], kinds: Iterable[Type], what: str) -> None:
    """Raise ModelError where a shape that is declared contradicts the one found; `what` says of which list these are.

    Only numbers count: names of dims mean nothing inside a subgraph.
    """
    for entry, kind in zip(entries, kinds, strict=False):
        found = _contradiction(entry, kind)
        if found:
            raise ModelError(f"{what} {entry.name!r} {found}", hint="declare the shape that it has, or none")


def _contradiction(entry: onnx.ValueInfoProto, kind: Type) -> str:
    """How the shape that is declared contradicts the one found; an empty string where it does not."""
    shape = entry.type.tensor_type.shape
    if not isinstance(kind, TensorType) or kind.dims is None or not entry.type.tensor_type.HasField("shape"):
        return ""
    declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]
    pairs = zip(declared, kind.dims, strict=False)
    differs = any(size is not None and isinstance(dim, int) and size != dim for size, dim in pairs)
    if not differs and len(declared) == len(kind.dims):
        return ""
    text = ", ".join("?" if size is None else str(size) for size in declared)
    return f"is declared [{text}], but has the shape {shape_text(kind.dims)}"


def check_output(entry: onnx.ValueInfoProto, value: Value, *, strict: bool, sizes: bool) -> None:
    """Compare what the model declares of an output with what is computed, which stands; its shape where `sizes`.

    Raises ModelError where they differ under `strict`; else that is a warning.
    """
    if entry.type.WhichOneof("value") != "tensor_type" or not entry.type.tensor_type.elem_type:
        return
    where = f"output {entry.name!r}"
    declared = element_type(entry.type.tensor_type.elem_type, where)
    problem = _contradiction(entry, value.type) if sizes else ""
    if isinstance(value.type, TensorType) and value.dtype is not declared:
        problem = f"is declared {declared} but computed as {value.dtype}"
    if problem and strict:
        raise ModelError(problem, where=where, hint="fix the model, or leave out --strict-onnx")
    if problem:
        log.warning("%s: %s", where, problem)

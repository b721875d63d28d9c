"""Checks of shapes that handlers share: of inputs against what an op takes, of subgraphs against what they declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from argosy.errors import ModelError
from argosy.frontends.onnx.node import Node
from argosy.ir.dim import equal
from argosy.ir.module import Value
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.operands import shape_text

if TYPE_CHECKING:
    import onnx

__all__ = ["check_declared", "check_dims"]


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


def check_declared(entries: Iterable[onnx.ValueInfoProto], kinds: Iterable[Type], what: str) -> None:
    """Raise ModelError where a shape that is declared contradicts the one found; `what` says of which list these are.

    Only numbers count: names of dims mean nothing inside a subgraph.
    """
    for entry, kind in zip(entries, kinds, strict=False):
        shape = entry.type.tensor_type.shape
        if not isinstance(kind, TensorType) or kind.dims is None or not entry.type.tensor_type.HasField("shape"):
            continue
        declared = [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]
        pairs = zip(declared, kind.dims, strict=False)
        differs = any(size is not None and isinstance(dim, int) and size != dim for size, dim in pairs)
        if differs or len(declared) != len(kind.dims):
            text = ", ".join("?" if size is None else str(size) for size in declared)
            raise ModelError(f"{what} {entry.name!r} is declared [{text}], but has the shape {shape_text(kind.dims)}")

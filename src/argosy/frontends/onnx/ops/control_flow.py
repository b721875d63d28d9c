"""If, Loop and Scan: subgraphs become closed modules with what they capture as further operands.

A carried value has one type for all iterations. It is found by importing the body with the type of the
initial value; where the body then gives back another one, what differs is widened (a dim to a new symbol, a
rank to unknown) and the body is imported again, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.errors import BranchError, ModelError, UnsupportedError
from argosy.frontends.onnx.checks import check_declared
from argosy.frontends.onnx.importer import Scope
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.order import node_reads
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.builder import Builder, Namer
from argosy.ir.dim import DimLike, Symbol, equal, symbol_dim
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.module import Module, Value
from argosy.ir.types import OptionalType, SequenceType, TensorType, Type
from argosy.ops.control import If, Loop, Scan
from argosy.ops.shapes import normalize_axis

if TYPE_CHECKING:
    import onnx

__all__: list[str] = []


@onnx_op("If")
def if_(node: Node) -> Sequence[Value | None]:
    """One of two subgraphs. A condition known while importing picks it now: the other may contradict the shapes."""
    condition = node.input(0)
    if condition.dtype is not BOOL:
        node.fail(f"the condition is {condition.type}, expected one bool")
    if condition.known is not None and condition.known.size == 1:
        node.ignore("then_branch", "else_branch")
        return _inline(node, "then_branch" if condition.known.reshape(-1)[0] else "else_branch")
    then_branch, then_captures = _branch(node, "then_branch")
    else_branch, else_captures = _branch(node, "else_branch")
    return node.add_all(If(then_branch, else_branch), condition, *then_captures, *else_captures)


def _branch(node: Node, name: str) -> tuple[Module, list[Value]]:
    try:
        branch, captures = node.body(name, ())
        check_declared(_graph(node, name).output, [value.type for value in branch.results], f"the output of {name}")
    except UnsupportedError:
        raise
    except ModelError as error:
        raise BranchError(error.what, where=error.where, hint=error.hint) from error
    return branch, captures


def _graph(node: Node, name: str) -> onnx.GraphProto:
    """The GRAPH attribute `name`."""
    attribute = node.raw_attribute(name)
    if attribute is None:
        node.fail(f"attribute {name!r} is missing")
    return attribute.g


def _inline(node: Node, branch: str) -> Sequence[Value | None]:
    graph = _graph(node, branch)
    outer = node.scope
    inner = Scope(outer.model, outer.builder, outer.opsets, None, f"{node.label}/{branch}/")
    for name in node_reads(node.proto):
        value = outer.look_up(name)
        if value is not None:
            inner.names[name] = value
    return [value for _, value in inner.import_graph(graph)]


@onnx_op("Loop")
def loop(node: Node) -> Sequence[Value | None]:
    """At most so many iterations, while the condition holds."""
    carried = [node.input(index) for index in range(2, len(node.inputs))]
    head = [_head_type(node, index, dtype) for index, dtype in enumerate((INT64, BOOL))]
    body, captures = _stable_body(node, head, [value.type for value in carried], [], first_result=1)
    return node.add_all(Loop(body, len(carried)), node.optional(0), node.optional(1), *carried, *captures)


def _head_type(node: Node, index: int, dtype: object) -> TensorType:
    """Type of the iteration number or the condition: a scalar, but some files declare one element of rank 1."""
    attribute = node.raw_attribute("body")
    element = INT64 if dtype is INT64 else BOOL
    if attribute is None or len(attribute.g.input) <= index:
        return TensorType(element, ())
    declared = attribute.g.input[index].type.tensor_type
    return TensorType(element, (1,) if declared.HasField("shape") and len(declared.shape.dim) == 1 else ())


def _stable_body(
    node: Node, head: Sequence[Type], states: Sequence[Type], rest: Sequence[Type], *, first_result: int
) -> tuple[Module, list[Value]]:
    """The body with parameter types (head, states, rest) such that it gives states of the types that it takes.

    The body's results from `first_result` on are the states.
    """
    namer = node.builder.namer
    widened: set[str] = set()
    kinds = list(states)
    while True:
        body, captures = node.body("body", (*head, *kinds, *rest))
        given = [value.type for value in body.results[first_result : first_result + len(kinds)]]
        if len(body.results) < first_result + len(kinds):
            what = f"the body gives {len(body.results)} results, expected at least {first_result + len(kinds)}"
            node.fail(
                what, hint=f"they are {'the condition, then ' if first_result else ''}a new value for each one carried"
            )
        pairs = enumerate(zip(kinds, given, strict=True))
        wider = [_wider(index, kind, other, namer, widened) for index, (kind, other) in pairs]
        if wider == kinds:
            return body, captures
        kinds = wider


def _wider(index: int, kind: Type, given: Type, namer: Namer, widened: set[str]) -> Type:
    """The type of carried value `index` that takes both."""
    try:
        return _widen(kind, given, namer, widened)
    except ModelError:
        found = f"{kind} before an iteration and {given} after it"
        hint = "give the body's result a Cast, or carry the value in another type"
        raise ModelError(f"carried value {index} is {found}, expected one type", hint=hint) from None


def _widen(kind: Type, given: Type, namer: Namer, widened: set[str]) -> Type:
    """The least type that takes both: `kind` itself where `given` fits it."""
    if isinstance(kind, OptionalType) or isinstance(given, OptionalType):
        element = kind.element if isinstance(kind, OptionalType) else kind
        other = given.element if isinstance(given, OptionalType) else given
        return OptionalType(_widen(element, other, namer, widened))
    if isinstance(kind, SequenceType) and isinstance(given, SequenceType):
        return SequenceType(_widen(kind.element, given.element, namer, widened))
    if kind == given:
        return kind
    if not isinstance(kind, TensorType) or not isinstance(given, TensorType) or kind.dtype is not given.dtype:
        raise ModelError(f"found {kind} and {given}, expected one type")
    if kind.dims is None or given.dims is None or len(kind.dims) != len(given.dims):
        return kind.with_dims(None)
    pairs = zip(kind.dims, given.dims, strict=True)
    return kind.with_dims(tuple(_widen_dim(dim, other, namer, widened) for dim, other in pairs))


def _widen_dim(dim: DimLike, given: DimLike, namer: Namer, widened: set[str]) -> DimLike:
    if equal(dim, given) or str(dim) in widened:
        return dim
    name = namer.unique("carried")
    widened.add(name)
    return symbol_dim(Symbol(name))


@onnx_op("Scan", since=9)
def scan(node: Node) -> Sequence[Value | None]:
    """Along any axis of the scanned inputs, forwards or backwards."""
    count = node.attr_int("num_scan_inputs")
    values = [node.input(index) for index in range(len(node.inputs))]
    states = _states(node, values, count)
    axes = node.attr_ints("scan_input_axes", (0,) * count)
    if len(axes) != count:
        node.fail(f"{len(axes)} scan_input_axes are given for {count} scan inputs")
    elements = [_element(value.type, axis) for value, axis in zip(values[states:], axes, strict=True)]
    check_declared(_graph(node, "body").input[states:], elements, "the input of the body")
    body, captures = _stable_body(node, [], [value.type for value in values[:states]], elements, first_result=0)
    outputs = len(body.results) - states
    op = Scan(
        body,
        states,
        axes,
        _directions(node, "scan_input_directions", count),
        node.attr_ints("scan_output_axes", (0,) * outputs),
        _directions(node, "scan_output_directions", outputs),
    )
    return node.add_all(op, *values, *captures)


def _states(node: Node, values: Sequence[Value], count: int) -> int:
    if not 0 < count <= len(values):
        node.fail(f"num_scan_inputs is {count}, expected 1..{len(values)}")
    return len(values) - count


def _directions(node: Node, name: str, count: int) -> tuple[bool, ...]:
    given = node.attr_ints(name, (0,) * count)
    if len(given) != count or any(direction not in (0, 1) for direction in given):
        node.fail(f"attribute {name!r} is {list(given)}, expected {count} entries of 0 or 1")
    return tuple(bool(direction) for direction in given)


def _element(kind: Type, axis: int) -> Type:
    """The type of one slice of a scanned input."""
    if not isinstance(kind, TensorType):
        raise ModelError(f"a scan input is {kind}, expected a tensor")
    if kind.dims is None:
        return kind
    place = normalize_axis(axis, len(kind.dims))
    return kind.with_dims(kind.dims[:place] + kind.dims[place + 1 :])


@onnx_op("Scan", since=8)
def scan_8(node: Node) -> Sequence[Value | None]:
    """Opset 8: everything has a batch axis in front and time behind it. A scan over the batch holds the other one."""
    if node.optional(0) is not None:
        node.unsupported("sequence_lens of Scan, opset 8, is not supported")
    count = node.attr_int("num_scan_inputs")
    values = [node.input(index) for index in range(1, len(node.inputs))]
    states = _states(node, values, count)
    items = [_element(value.type, 0) for value in values]
    elements = [_element(item, 0) for item in items[states:]]
    body, captures = _stable_body(node, [], items[:states], elements, first_result=0)
    outputs = len(body.results) - states
    inner = Scan(body, states, (0,) * count, _directions(node, "directions", count), (0,) * outputs, (False,) * outputs)
    builder = Builder(f"{node.label}/batch", namer=node.builder.namer)
    operands = [builder.parameter(f"item{index}", kind) for index, kind in enumerate(items)]
    operands += [builder.parameter(f"captured{index}", value.type) for index, value in enumerate(captures)]
    results = builder.add_all(inner, *operands, source=node.label)
    module = builder.module([(f"{index}:result", value) for index, value in enumerate(results)])
    axes, forwards = (0,) * len(values), (False,) * len(values)
    every = len(results)
    return node.add_all(Scan(module, 0, axes, forwards, (0,) * every, (False,) * every), *values, *captures)

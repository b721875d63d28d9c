"""The importer: an ONNX model to a Program, one instruction after another.

Nothing is folded here: the program says what the model says, with functions inlined and dims bound. All
unsupported nodes are found before the first is imported, and reported at once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from argosy.errors import ArgosyError, InternalError, ModelError, UnsupportedError
from argosy.frontends.onnx.advice import DAMAGED, advised, attributes_hint, giver
from argosy.frontends.onnx.checks import check_output
from argosy.frontends.onnx.domains import Opsets, canonical_domain
from argosy.frontends.onnx.external_data import ExternalData
from argosy.frontends.onnx.functions import Functions
from argosy.frontends.onnx.node import Node, node_label
from argosy.frontends.onnx.order import in_order
from argosy.frontends.onnx.protos import read_model, read_sparse, read_tensor, read_type
from argosy.frontends.onnx.registry import find_handler
from argosy.frontends.onnx.signature import attribute_names, check_signature
from argosy.frontends.onnx.texts import check_texts
from argosy.frontends.onnx.unsupported import refuse_unsupported
from argosy.ir.binding import bind_types
from argosy.ir.builder import Builder
from argosy.ir.dtype import INT64
from argosy.ir.module import Constant, Module, Value
from argosy.ir.op import Known, Op, op_class
from argosy.ir.program import Program
from argosy.ir.types import Type, UnrankedError
from argosy.options import Dimensions
from argosy.registry import did_you_mean

if TYPE_CHECKING:
    import onnx

__all__ = ["ImportOptions", "Model", "Scope", "load"]

log = logging.getLogger("argosy.onnx")

_EXPANSION = 1000
"""Times that a node of a file may be imported on average: in calls of functions, in bodies that are tried again."""
_NAMES = 8
"""Names that an error lists."""
_RENAME = "rename one of the two values"
_GIVE_SHAPES = "give the shapes of the model's inputs with --input-shape"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to read a model.

    `dims` gives inputs their dims; `skip_unknown` turns unsupported nodes into placeholders, good for
    reading only; `strict` makes errors of what is else accepted with a warning.
    """

    dims: Dimensions = field(default_factory=Dimensions)
    skip_unknown: bool = False
    strict: bool = False


def load(source: str | Path | bytes | Any, options: ImportOptions | None = None) -> Program:
    """The program of an ONNX model given as a path, bytes or ModelProto.

    Raises ModelError for an invalid model, UnsupportedError listing every node that has no handler.
    """
    proto, external, name = read_model(source)
    options = options or ImportOptions()
    try:
        check_texts(proto)
        model = Model(proto, external, options)
        if not options.skip_unknown:
            refuse_unsupported(model.functions, model.opsets)
        main = _import_main(model)
    except ModelError as error:
        raise error.at(name).advise(DAMAGED) from None
    except ArgosyError as error:
        raise error.at(name) from None
    except RecursionError:
        raise ModelError("subgraphs or functions are nested too deeply", where=name) from None
    return Program(main, _metadata(proto))


class Model:
    """What the whole import shares: opsets, functions, external files, options."""

    def __init__(self, proto: onnx.ModelProto, external: ExternalData, options: ImportOptions) -> None:
        self.proto = proto
        self.external = external
        self.options = options
        self.opsets = Opsets.of(proto.opset_import, strict=options.strict, needed=proto.ir_version >= 3)
        self.functions = Functions(proto)
        self.calls: list[str] = []
        self._left = _EXPANSION * (len(proto.graph.node) + sum(len(body.node) for body in proto.functions) + 10)

    def count_node(self, label: str) -> None:
        """Count one more imported node; raises ModelError where a small file expands without end."""
        self._left -= 1
        if self._left < 0:
            raise ModelError("functions and subgraphs expand to too many nodes", where=label)


def _metadata(proto: onnx.ModelProto) -> Mapping[str, str]:
    entries = {
        "producer": " ".join(part for part in (proto.producer_name, proto.producer_version) if part),
        "ir_version": str(proto.ir_version),
        "opsets": ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in proto.opset_import),
        "graph": proto.graph.name,
    }
    return MappingProxyType({key: value for key, value in entries.items() if value})


def _import_main(model: Model) -> Module:
    graph = model.proto.graph
    builder = Builder("main")
    scope = Scope(model, builder, model.opsets, None)
    initializers = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    # Before IR version 4 every initializer is listed as an input too; it is a constant all the same.
    entries = [entry for entry in graph.input if entry.name not in initializers]
    _refuse_twins([entry.name for entry in entries], "input")
    types = {entry.name: read_type(entry.type, entry.name, f"input {entry.name!r}") for entry in entries}
    bound = bind_types(types, model.options.dims)
    for entry in entries:
        where = f"input {entry.name!r}"
        scope.define(entry.name, builder.parameter(entry.name, bound[entry.name]), where)
    _refuse_twins([entry.name for entry in graph.output], "output")
    results = scope.import_graph(graph)
    if not results:
        log.warning("the graph has no outputs, so that nothing is computed")
    sizes = model.options.dims == Dimensions()  # else they are not those of the file
    for entry, (_, value) in zip(graph.output, results, strict=True):
        check_output(entry, value, strict=model.options.strict, sizes=sizes)
    return builder.module(results)


def _refuse_twins(names: Sequence[str], what: str) -> None:
    """Raise ModelError for a name that stands twice in a list of inputs or outputs."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ModelError(f"the name {name!r} is given twice", where=f"{what} {position}", hint=_RENAME)


@dataclass(slots=True)
class Scope:
    """Names of one graph. Outer names that a body reads become parameters of its module, constants are copied in."""

    model: Model
    builder: Builder
    opsets: Opsets
    outer: Scope | None
    prefix: str = ""
    names: dict[str, Value] = field(default_factory=dict)
    captures: list[Value] = field(default_factory=list)

    def define(self, name: str, value: Value, where: str) -> None:
        """Enter a name; each may be given once in a graph (ONNX IR spec, "Names Within a Graph")."""
        if name in self.names:
            first = giver(self.names[name])
            raise ModelError(f"the name {name!r} is given twice, before by {first}", where=where, hint=_RENAME)
        self.names[name] = value

    def find(self, name: str, where: str) -> Value:
        """The value called `name` here or further out; raises ModelError for an unknown name."""
        value = self.look_up(name)
        if value is None:
            hint = self._names_hint(name)
            raise ModelError(f"reads {name!r}, which no node, input or initializer gives", where=where, hint=hint)
        return value

    def _names_hint(self, name: str) -> str:
        names = sorted(self.visible())
        shown = ", ".join(map(repr, [*names[:_NAMES], *(["…"] if len(names) > _NAMES else [])]))
        return did_you_mean(name, names) or (f"known names: {shown}" if names else "nothing has a name yet")

    def visible(self) -> set[str]:
        """The names that a node can read here."""
        return set(self.names) | (self.outer.visible() if self.outer else set())

    def look_up(self, name: str) -> Value | None:
        """Like `find`, but None for an unknown name."""
        if name in self.names:
            return self.names[name]
        if self.outer is None:
            return None
        value = self.outer.look_up(name)
        if value is None:
            return None
        op = value.instruction.op
        if isinstance(op, Constant):
            inner = self.builder.constant(op.literal, name=name)
        elif _is_shape(value):
            # A parameter would hide what is known of the value; the outer symbols hold inside too.
            inner = self.builder.add(_dims_op(value.known), names=(name,))
        else:
            self.captures.append(value)
            inner = self.builder.parameter(name, value.type)
        self.names[name] = inner
        return inner

    def import_graph(self, graph: onnx.GraphProto) -> list[tuple[str, Value]]:
        """Import initializers and nodes; the named outputs."""
        for tensor in graph.initializer:
            where = f"initializer {tensor.name!r}"
            literal = read_tensor(tensor, self.model.external, where)
            self.define(tensor.name, self.builder.constant(literal, name=tensor.name), where)
        for sparse in graph.sparse_initializer:
            self._sparse(sparse)
        self.import_nodes(graph.node)
        return [(entry.name, self.output(entry.name, f"output {entry.name!r}")) for entry in graph.output]

    def output(self, name: str, where: str) -> Value:
        """The value of an output of a graph or function; raises ModelError for an unknown name."""
        value = self.look_up(name)
        if value is None:
            raise ModelError("no node, input or initializer gives it", where=where, hint=self._names_hint(name))
        return value

    def _sparse(self, sparse: onnx.SparseTensorProto) -> None:
        where = f"sparse initializer {sparse.values.name!r}"
        dense = read_sparse(sparse, self.model.external, where)
        self.define(sparse.values.name, self.builder.constant(dense, name=sparse.values.name), where)

    def import_nodes(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Import nodes, in an order in which every value is there before it is read."""
        for index, node in in_order(nodes, self.names, self.prefix):
            label = node_label(node, index, self.prefix)
            self._import_node(node, label)

    def _import_node(self, proto: onnx.NodeProto, label: str) -> None:
        self.model.count_node(label)
        inputs = [self.find(name, label) if name else None for name in proto.input]
        try:
            results = self._call(proto, label, inputs)
        except ArgosyError as error:
            if not error.where.startswith(label):
                error.at(label)
            raise advised(error, proto, canonical_domain(proto.domain), self.opsets.version(proto), inputs) from None
        except UnrankedError:
            raise UnsupportedError(
                f"{proto.op_type} needs the rank of its inputs, which is not known here",
                (),
                where=label,
                hint=_GIVE_SHAPES,
            ) from None
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            raise InternalError(
                f"importing {proto.op_type} failed: {type(error).__name__}: {error}", where=label
            ) from error
        if len(results) < sum(1 for name in proto.output if name) and not all(proto.output[: len(results)]):
            results = results + [None] * len(proto.output)
        for position, name in enumerate(proto.output):
            if not name:
                continue
            if position >= len(results):
                raise ModelError(
                    f"has {len(proto.output)} outputs, {proto.op_type} gives {len(results)} here",
                    where=label,
                    hint=f"remove the output {name!r}",
                )
            value = results[position]
            if value is None:
                what = f"output {position} ({name!r}) is not computed by Argosy"
                raise UnsupportedError(what, (), where=label, hint="remove the output where nothing reads it")
            self.define(name, self._named(value, name, label), label)

    def _named(self, value: Value, name: str, label: str) -> Value:
        """Put the ONNX name on the value's instruction, if that was made for this node and has none yet."""
        return self.builder.name_result(value, name, label)

    def _call(self, proto: onnx.NodeProto, label: str, inputs: list[Value | None]) -> list[Value | None]:
        domain, version = self.opsets.resolve(proto, label)
        handler = find_handler(domain, proto.op_type, version)
        function = None if handler else self.model.functions.find(proto, domain, version)
        if handler is None and function is not None:
            return self._inline(function(inputs), proto, label, inputs)
        check_signature(proto, label, domain, version, inputs, strict=self.model.options.strict)
        node = Node(proto, label, domain, version, self, inputs)
        if handler is None:
            if not self.model.options.skip_unknown:
                # Nodes of the model itself were looked at before; this one stands in a function body of the standard.
                raise UnsupportedError(f"{domain or 'ai.onnx'}::{proto.op_type}, opset {version}, is not supported", ())
            return self._placeholder(proto, domain, inputs)
        answer = handler(node)
        unread = node.unread_attributes()
        if unread:
            _refuse_attribute(node, unread[0])
        return [answer] if isinstance(answer, Value) else list(answer)

    def _placeholder(self, proto: onnx.NodeProto, domain: str, inputs: list[Value | None]) -> list[Value | None]:
        op = op_class("unknown")(f"{domain or 'ai.onnx'}::{proto.op_type}", len(proto.output))  # type: ignore[call-arg]
        return list(self.builder.add_all(op, *inputs))

    def _inline(
        self, body: onnx.FunctionProto, proto: onnx.NodeProto, label: str, inputs: list[Value | None]
    ) -> list[Value | None]:
        """Import the body of a function in place of the call; its nodes are named `outer/inner/op`."""
        name = f"{canonical_domain(body.domain) or 'ai.onnx'}::{body.name}"
        calls = self.model.calls
        if name in calls:
            raise ModelError(
                f"the function {name} calls itself: {' → '.join([*calls[calls.index(name) :], name])}",
                hint="ONNX functions must not be recursive",
            )
        if len(inputs) > len(body.input):
            raise ModelError(f"has {len(inputs)} inputs, the function {name} takes {len(body.input)}")
        if len(proto.output) > len(body.output):
            raise ModelError(f"has {len(proto.output)} outputs, the function {name} gives {len(body.output)}")
        inner = Scope(self.model, self.builder, self.opsets.for_function(body.opset_import), None, f"{label}/")
        for entry, value in zip(body.input, inputs, strict=False):
            if value is not None:
                inner.names[entry] = value
        calls.append(name)
        inner.import_nodes(self.model.functions.bind_attributes(body, proto, set(inner.names)))
        calls.pop()
        results: list[Value | None] = []
        for position, entry in enumerate(body.output):
            wanted = position < len(proto.output) and bool(proto.output[position])
            results.append(
                inner.output(entry, f"function {name}: output {entry!r}") if wanted else inner.look_up(entry)
            )
        return results

    def import_body(self, graph: onnx.GraphProto, name: str, types: Sequence[Type]) -> tuple[Module, list[Value]]:
        """A subgraph as a closed module, and the outer values that it captures (parameters after its inputs)."""
        if len(graph.input) != len(types):
            what = f"the subgraph has {len(graph.input)} inputs, expected {len(types)}"
            taken = (
                f"it gets {', '.join(map(str, types))}" if types else "it reads values of the graph around it by name"
            )
            raise ModelError(what, where=name, hint=taken)
        _refuse_twins([entry.name for entry in graph.input], f"{name}: input")
        builder = Builder(name, namer=self.builder.namer)
        inner = Scope(self.model, builder, self.opsets, self, f"{name}/")
        for entry, kind in zip(graph.input, types, strict=True):
            inner.define(entry.name, builder.parameter(entry.name, kind), name)
        results = inner.import_graph(graph)
        # A body may give one value under several names, or one name twice; positions tell results apart.
        return builder.module(
            [(f"{index}:{result}", value) for index, (result, value) in enumerate(results)]
        ), inner.captures


def _refuse_attribute(node: Node, name: str) -> NoReturn:
    op = node.proto.op_type
    known = attribute_names(node.domain, op, node.version)
    hint = attributes_hint(node.domain, op, node.version)
    if known is None or name in known:
        node.unsupported(f"attribute {name!r} of {op} is not supported", hint=hint)
    node.fail(f"{op} (opset {node.version}) has no attribute {name!r}", hint=hint)


def _is_shape(value: Value) -> bool:
    """Whether a value is an int64 scalar or vector whose elements are all known, as numbers and dims."""
    return value.known is not None and value.known.ndim <= 1 and value.tensor.dtype is INT64


def _dims_op(known: Known | None) -> Op:
    """The op that gives known numbers and dims as a value."""
    values = np.asarray(known, dtype=object)
    return op_class("dims")(tuple(values.reshape(-1).tolist()), values.ndim == 0)  # type: ignore[call-arg]

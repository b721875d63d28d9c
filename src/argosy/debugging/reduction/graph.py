"""A model with the true values of all its nodes, from which any part can be cut out as a case of its own."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper, numpy_helper

from argosy.debugging.reduction.capture import Captured, Reference
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.messages import tensor_message
from argosy.frontends.onnx.order import node_reads

__all__ = ["Graph"]

log = logging.getLogger("argosy.reduce")


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of a case in their order, what each reads, who reads each value, and what the reference computes."""

    case: Case
    nodes: Sequence[onnx.NodeProto]
    reads: Sequence[Sequence[str]]
    readers: Mapping[str, Sequence[int]]
    captured: Mapping[str, Captured]

    @staticmethod
    def of(case: Case, reference: Reference) -> Graph:
        """The graph of a case, which the reference evaluates by `reference`.

        Where it can't read or evaluate the model as a whole, it is given the nodes one by one; what those that fail
        give isn't known then.
        """
        nodes = list(case.model.graph.node)
        reads = [sorted(node_reads(node)) for node in nodes]
        readers: dict[str, list[int]] = {}
        for index, names in enumerate(reads):
            for name in names:
                readers.setdefault(name, []).append(index)
        captured: dict[str, Captured] = {}
        graph = Graph(case, nodes, reads, readers, captured)
        read = {*readers, *graph.outputs}
        given = [[name for name in node.output if name in read] for node in nodes]
        try:
            captured.update(reference.values(case, [name for names in given for name in names]))
        except Exception as error:  # noqa: BLE001 - the model is here because something is wrong with it
            log.info("the nodes are evaluated one by one: %s", error)
            for index, names in enumerate(given):
                part = graph.cut([index], names)
                try:
                    captured.update({} if part is None else reference.values(part, names))
                except Exception as error:  # noqa: BLE001 - this node may be what fails
                    log.info("what node %d gives isn't known: %s", index, error)
        return graph

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [entry.name for entry in self.case.model.graph.output]

    def value(self, name: str) -> Any:
        """The true value called `name`; None where it isn't known."""
        if name in self.captured:
            return self.captured[name].value
        held = next((tensor for tensor in self.case.model.graph.initializer if tensor.name == name), None)
        return self.case.inputs.get(name) if held is None else numpy_helper.to_array(held)

    def cut(self, chosen: Sequence[int], outputs: Collection[str] | None = None) -> Case | None:
        """The nodes with the indices `chosen` as a model, fed with the true values of what they read.

        Its outputs are those values that are read elsewhere or are outputs of the whole, unless named in `outputs`.
        None where it would have none, or where a value that it reads isn't known.
        """
        inside = set(chosen)
        nodes = [self.nodes[index] for index in chosen]
        made = [name for node in nodes for name in node.output if name]
        wanted = set(self.outputs) if outputs is None else set(outputs)
        if outputs is None:
            wanted.update(name for name in made if not inside.issuperset(self.readers.get(name, ())))
        given = [name for name in made if name in wanted]
        if not given:
            return None
        model = self.header()
        model.graph.node.extend(nodes)
        inputs: dict[str, Any] = {}
        if not self.give(model, inputs, {name for index in chosen for name in self.reads[index]}.difference(made)):
            return None
        declared = {entry.name: entry for entry in self.case.model.graph.output}
        for name in given:
            known = self.captured[name].entry if name in self.captured else declared.get(name)
            model.graph.output.append(known or onnx.ValueInfoProto(name=name))
        return Case(model, inputs)

    def give(self, model: onnx.ModelProto, inputs: dict[str, Any], names: Collection[str]) -> bool:
        """Let a part of this model have the values called `names`; False where one of them isn't known.

        What is fixed becomes an initializer of it, what is not an input.
        """
        whole, graph = self.case.model.graph, model.graph
        missing = set(names)
        graph.initializer.extend(tensor for tensor in whole.initializer if tensor.name in missing)
        missing.difference_update(tensor.name for tensor in graph.initializer)
        given = [entry for entry in whole.input if entry.name in missing]
        graph.input.extend(given)
        inputs.update((entry.name, self.case.inputs[entry.name]) for entry in given)
        missing.difference_update(inputs)
        for name in (name for name in self.captured if name in missing):
            found = self.captured[name]
            if found.fixed:
                graph.initializer.append(tensor_message(name, found.value))
            else:
                graph.input.append(found.entry)
                inputs[name] = found.value
        return missing.issubset(self.captured)

    def entry(self, name: str) -> onnx.ValueInfoProto | None:
        """The name and type of a value; None where that isn't known."""
        if name in self.captured:
            return self.captured[name].entry
        whole = self.case.model.graph
        for tensor in whole.initializer:
            if tensor.name == name:
                return helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
        return next((entry for entry in whole.input if entry.name == name), None)

    def needed(self, outputs: Collection[str]) -> list[int]:
        """The indices of the nodes that the values called `outputs` depend on."""
        wanted = set(outputs)
        found: list[int] = []
        for index in reversed(range(len(self.nodes))):
            if wanted.intersection(self.nodes[index].output):
                wanted.update(self.reads[index])
                found.append(index)
        return found[::-1]

    def header(self) -> onnx.ModelProto:
        """A model without a graph: versions and functions of the whole."""
        whole = self.case.model
        model = onnx.ModelProto(ir_version=whole.ir_version, producer_name="argosy")
        model.opset_import.extend(whole.opset_import)
        model.functions.extend(whole.functions)
        model.graph.name = whole.graph.name or "reduced"
        return model

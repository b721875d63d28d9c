"""A program as a Graphviz drawing: a box for each instruction, an arrow for each value that is read."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.ir.module import Constant, Instruction, Module
from argosy.ir.printer import Writer
from argosy.ir.program import Program

__all__ = ["graphviz"]


def graphviz(program: Program) -> str:
    """The text of a `digraph`; modules inside ops are clusters. Constants are drawn small."""
    lines = [
        "digraph argosy {",
        '  node [shape=box, style=rounded, fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=8];',
    ]
    lines += [f"  {line}" for line in _module(program.main, "m", Writer())]
    return "\n".join([*lines, "}"])


def _module(module: Module, prefix: str, writer: Writer) -> Iterator[str]:
    ids = {
        instruction: f"{prefix}_{number}"
        for number, instruction in enumerate((*module.parameters, *module.instructions))
    }
    for instruction, node in ids.items():
        yield f"{node} [{_look(instruction, writer)}];"
        for operand in instruction.operands:
            if operand is not None:
                label = _quote(writer.type(operand.type))
                yield f"{ids[operand.instruction]} -> {node} [label={label}];"
        for number, inner in enumerate(instruction.op.modules()):
            yield f"subgraph cluster_{node}_{number} {{ label={_quote(inner.name)};"
            yield from (f"  {line}" for line in _module(inner, f"{node}_{number}", writer))
            yield "}"
    for number, (name, value) in enumerate(zip(module.result_names, module.results, strict=True)):
        label = _quote(f"{name}\n{writer.type(value.type)}")
        yield f"{prefix}_out{number} [shape=plain, label={label}];"
        yield f"{ids[value.instruction]} -> {prefix}_out{number};"


def _look(instruction: Instruction, writer: Writer) -> str:
    if isinstance(instruction.op, Constant):
        return f"shape=plain, fontcolor=gray40, label={_quote(writer.type(instruction.types[0]))}"
    if instruction.op.name == "parameter":
        return f"shape=plain, label={_quote(f'{instruction.names[0]}{chr(10)}{writer.type(instruction.types[0])}')}"
    told = instruction.op.name
    formula = getattr(instruction.op, "formula", None)
    if formula is not None:
        told = formula.primitive or str(formula)
    return f"label={_quote(f'{told}{chr(10)}{instruction.source}' if instruction.source else told)}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

"""How a target does each instruction, and why not in another way: for those who ask, and who look for faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from argosy.ir.module import Constant, Instruction, Module, Parameter

__all__ = ["BLOCKS", "HOST", "LEFT_OUT", "NOTHING", "Choice", "config_words", "nodes_of"]

HOST = "host"
"""In place of a solution: numpy does it on the host."""
NOTHING = "nothing"
"""In place of a solution: nothing is done, the result lies where the operand does."""
LEFT_OUT = "it is left out, as asked"
"""Why a solution is not asked."""
BLOCKS = "control flow"
"""In place of a solution: blocks of the plan do it, and what is inside them has choices of its own."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How an instruction that has gone through the pipeline is done.

    `solution` is the name of the way taken, `host` or `nothing`; `config` its configuration in words, if it has some;
    `at_load` says that it is done once, when the artifact is loaded. `declined` are those that were asked before, and
    why not: `name: reason`. `kernels` are the entries of the kernels that it takes, those that reorder operands too.
    """

    instruction: Instruction
    solution: str
    config: str = ""
    at_load: bool = False
    declined: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the model that the instruction stands for, by name, in order."""
        return tuple(dict.fromkeys(nodes_of(self.instruction)))


def config_words(config: object) -> str:
    """A solution's configuration for people: `rows=4, columns=32`; what is no number or word in it is left out."""
    if config is None or not dataclasses.is_dataclass(config):
        return "" if config is None else str(config)
    pairs = ((each.name, getattr(config, each.name)) for each in dataclasses.fields(config))
    return ", ".join(f"{name}={value}" for name, value in pairs if isinstance(value, (bool, int, float, str)))


def nodes_of(instruction: Instruction) -> Iterator[str]:
    """The sources of what an instruction does: its own, and those of the instructions inside it."""
    inside = [inner for module in instruction.op.modules() for inner in _instructions(module)]
    for each in (*inside, instruction):
        if each.source and not isinstance(each.op, Constant):
            yield each.source


def _instructions(module: Module) -> Iterator[Instruction]:
    return (each for each in module.walk() if not isinstance(each.op, Parameter))

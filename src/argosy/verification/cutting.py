"""Parts of a module as programs of their own, with the inputs that they get in a run and what they should give.

What a part reads from outside becomes an input, what is read outside of it an output. Values come from a run of ref,
so that a part is judged by itself, whatever stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argosy.ir.dim import Dim, lone_symbol, substitute
from argosy.ir.interpreter import Interpreter
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Env, Known
from argosy.ir.program import Program
from argosy.ir.types import TensorType, Type, map_dims, type_symbols
from argosy.ops.dim_values import DimValues
from argosy.rewrite.rebuild import Rebuild, mentioned_symbols, namer_of
from argosy.verification.widened import WideReference, rounded, wide_values

__all__ = ["Cut", "Truth", "apart", "cut", "exposed"]


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What each value of a module is in a run of ref, and each symbol.

    `number` is that of the run, which random numbers depend on. `exact` are the values in float64 where it is a run of
    ref64; then `values` are those, rounded to the types of the module. `outer` are symbols of the modules around it.
    """

    module: Module
    values: Mapping[Value, Any]
    symbols: Mapping[str, int]
    number: int = 0
    exact: Mapping[Value, Any] | None = None
    outer: frozenset[str] = frozenset()

    @staticmethod
    def of(
        module: Module,
        arguments: Sequence[Any],
        number: int = 0,
        *,
        wide: bool = False,
        outer: Mapping[str, int] | None = None,
    ) -> Truth:
        """Run a module on ref, or `wide` on ref64. All values are kept. `outer` are symbols of modules around it."""
        env = Env(dict(outer or {}), number)
        if wide:
            exact = wide_values(module, arguments, env)
            values = rounded(exact, {v: v.type for v in exact})
            return Truth(module, values, dict(env.symbols), number, exact, frozenset(outer or ()))
        values = {
            parameter.result(): argument for parameter, argument in zip(module.parameters, arguments, strict=True)
        }

        def keep(instruction: Instruction, results: Sequence[Any]) -> None:
            values.update(zip(instruction.results, results, strict=True))

        Interpreter(module).run(arguments, env, keep)
        return Truth(module, values, dict(env.symbols), number, outer=frozenset(outer or ()))

    @staticmethod
    def by_name(module: Module, inputs: Mapping[str, Any], number: int = 0, *, wide: bool = False) -> Truth:
        """`of`, with the arguments by the names of the parameters."""
        return Truth.of(module, [inputs[name] for name in module.parameter_names], number, wide=wide)

    @property
    def is_wide(self) -> bool:
        """Whether it is a run of ref64."""
        return self.exact is not None

    def operands(self, step: Instruction) -> list[Any]:
        """What an instruction reads; None where an operand is absent."""
        return [None if value is None else self.values[value] for value in step.operands]

    @property
    def whole(self) -> Cut:
        """The whole module."""
        results = dict(zip(self.module.result_names, self.module.results, strict=True))
        inputs = {parameter.names[0]: self.values[parameter.result()] for parameter in self.module.parameters}
        expected = {name: self.values[value] for name, value in results.items()}
        exact = None if self.exact is None else {name: self.exact[value] for name, value in results.items()}
        return Cut(Program(self.module), inputs, expected, tuple(self.steps), self.number, exact)

    @property
    def steps(self) -> list[Instruction]:
        """The instructions that compute something."""
        return [step for step in self.module.instructions if not isinstance(step.op, Constant)]


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A part of a module as a program, with its inputs and what ref says of its outputs, by name.

    `number` and `exact` are as in `Truth`; exact is what ref64 makes of these very inputs.
    """

    program: Program
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    instructions: tuple[Instruction, ...]
    number: int = 0
    exact: Mapping[str, Any] | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops of its instructions, by name."""
        return tuple(step.op.name for step in self.instructions)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the model in it, by name."""
        return tuple(dict.fromkeys(step.source for step in self.instructions if step.source))


def cut(truth: Truth, chosen: Sequence[Instruction]) -> Cut | None:
    """The part of the module that is `chosen`, in the order of the module; None where nothing of it is read outside."""
    return _judged(_Cutter(truth, chosen).made(_read_outside(truth.module, chosen)), truth)


def apart(truth: Truth, chosen: Sequence[Instruction]) -> Cut | None:
    """The `chosen` instructions side by side in one program, each on true inputs.

    All their results are outputs, in order.
    """
    cutter = _Cutter(truth, chosen, apart=True)
    return _judged(cutter.made([value for step in chosen for value in step.results]), truth)


def exposed(truth: Truth, shown: Sequence[Instruction]) -> Cut | None:
    """The whole module as far as the `shown` instructions need it, with all their results as outputs, in order."""
    return _Cutter(truth, truth.steps).made([value for step in shown for value in step.results])


def _judged(part: Cut | None, truth: Truth) -> Cut | None:
    """A part with what ref64 makes of its inputs, where the truth is that of ref64."""
    if part is None or not truth.is_wide:
        return part
    exact = WideReference(part.program).answer(part.inputs, truth.number)
    return replace(part, exact=exact, expected=rounded(exact, part.program.outputs))


def _read_outside(module: Module, chosen: Sequence[Instruction]) -> list[Value]:
    inside = set(chosen)
    wanted = {value for value in module.results if value.instruction in inside}
    for step in module.instructions:
        if step not in inside:
            wanted.update(value for value in step.operands if value is not None and value.instruction in inside)
    return [value for step in chosen for value in step.results if value in wanted]


class _Cutter(Rebuild):
    def __init__(self, truth: Truth, chosen: Sequence[Instruction], *, apart: bool = False) -> None:
        definers = _definers(truth.module)
        own = set() if apart else set(chosen)
        given = set(truth.module.parameters)
        # Symbols that come from elsewhere are what they are in the run.
        told = {name for step in given for name in _lone(step.types[0])}
        inner = {name for name, definer in definers.items() if definer in own or definer in given}
        inner -= truth.outer - told
        outside = {name: size for name, size in truth.symbols.items() if name not in inner}
        super().__init__(truth.module, namer_of(truth.module), outside)
        self._truth = truth
        self._chosen = chosen
        self._apart = apart
        self._brought: dict[Value, Value] = {}
        self._inputs: dict[str, Any] = {}
        self._names: set[str] = set(truth.module.parameter_names)

    def made(self, results: Sequence[Value]) -> Cut | None:
        """The part, with these results."""
        outputs: list[tuple[str, Value]] = []
        expected: dict[str, Any] = {}
        wanted: dict[Instruction, list[Value]] = {}
        for value in results:
            wanted.setdefault(value.instruction, []).append(value)
        taken: set[str] = set()
        done: set[Instruction] = set()
        for step in self._in_order():
            for operand in step.operands:
                if operand is not None and operand.instruction not in done:
                    brought = self._bring(operand)
                    if brought != operand:  # a parameter that is taken over as it is stands for itself
                        self._values[operand] = brought
            self.visit(step)
            if not self._apart:
                done.add(step)
            for value in wanted.get(step, ()):
                name = _unique(value.name or f"{step.source or step.op.name}:{value.index}", taken)
                outputs.append((name, self.value(value)))
                expected[name] = self._truth.values[value]
        if not outputs:
            return None
        self._define_symbols(outputs)
        program = Program(self.tape.module(outputs))
        return Cut(program, self._inputs, expected, tuple(self._chosen), self._truth.number)

    def _in_order(self) -> Sequence[Instruction]:
        """The chosen instructions with the constants that they read, each in its old place; apart, without those."""
        if self._apart:
            return self._chosen
        wanted = set(self._chosen)
        wanted.update(v.instruction for step in self._chosen for v in step.operands if v is not None and v.constant)
        return [step for step in self._truth.module.instructions if step in wanted]

    def _bring(self, value: Value) -> Value:
        """A value from outside: a constant, sizes that follow from others, or an input."""
        if value not in self._brought:
            self._brought[value] = self._made(value)
        return self._brought[value]

    def _made(self, value: Value) -> Value:
        maker = value.instruction
        if isinstance(maker.op, Constant):
            return self.tape.constant(maker.op.literal)
        kind = value.type
        if value.known is not None and maker not in self._truth.module.parameters and isinstance(kind, TensorType):
            found = self._from_sizes(value.known, kind)
            if found is not None:
                return found
        if maker in self._truth.module.parameters:
            return self._parameter(maker)
        name = _unique(value.name or f"{maker.source or maker.op.name}:{value.index}", self._names)
        array = self._truth.values[value]
        self._inputs[name] = array
        return self.tape.parameter(name, self._type(kind, array))

    def _type(self, kind: Type, array: Any) -> Type:
        if isinstance(kind, TensorType) and kind.dims is None and isinstance(array, np.ndarray):
            return TensorType(kind.dtype, array.shape)
        return map_dims(kind, lambda dim: substitute(dim, self.substitution))

    def _from_sizes(self, known: Known, kind: TensorType) -> Value | None:
        """A value that the compiler knows to be sizes: without them as an input it knows as much as before."""
        entries: list[Any] = known.reshape(-1).tolist()  # floats among them are scales of shapes
        elements = [substitute(each, self.substitution) if isinstance(each, Dim) else each for each in entries]
        if not any(isinstance(each, Dim) for each in elements):
            return self.tape.constant(Literal.of(np.array(elements, kind.dtype.numpy).reshape(known.shape), kind.dtype))
        sizes = DimValues(tuple(elements), scalar=known.ndim == 0)
        return self.tape.add(sizes) if known.ndim <= 1 and sizes.infer() == (kind,) else None

    def _parameter(self, maker: Instruction) -> Value:
        name = maker.names[0]
        if name not in self._inputs:
            array = self._inputs[name] = self._truth.values[maker.result()]
            if any(symbol.name in self.substitution for symbol in type_symbols(maker.types[0])):
                self._values[maker.result()] = self.tape.parameter(name, self._type(maker.types[0], array))
            else:
                self.adopt(maker)
        return self.value(maker.result())

    def _define_symbols(self, outputs: Sequence[tuple[str, Value]]) -> None:
        """Take along those parameters of the module that tell sizes which the part mentions."""
        module = self.tape.module(outputs)
        mentioned = {symbol.name for step in module.walk() for kind in step.types for symbol in type_symbols(kind)}
        mentioned |= set(mentioned_symbols(module))
        told = {name for step in module.parameters for name in _lone(step.types[0])}
        for parameter in self._truth.module.parameters:
            tells = set(_lone(parameter.types[0])) & mentioned - told
            if tells and parameter.names[0] not in self._inputs:
                self._parameter(parameter)
                told |= tells


def _definers(module: Module) -> dict[str, Instruction]:
    """Which parameter or instruction gives each symbol its value."""
    found: dict[str, Instruction] = {}
    for step in (*module.parameters, *module.instructions):
        for kind in step.types:
            for symbol in sorted(type_symbols(kind), key=str):
                found.setdefault(symbol.name, step)
    return found


def _lone(kind: Type) -> Iterator[str]:
    dims = kind.dims if isinstance(kind, TensorType) and kind.dims is not None else ()
    for dim in dims:
        symbol = lone_symbol(dim)
        if symbol is not None:
            yield symbol.name


def _unique(name: str, taken: set[str]) -> str:
    """A name like `name` that is not taken yet; it is from now on."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}#{number}"
    taken.add(found)
    return found

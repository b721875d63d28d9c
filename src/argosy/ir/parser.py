"""Reads the text form that `argosy.ir.printer` writes.

The result is valid by construction: the types of every instruction are inferred again and must be those
that the text states, so that a hand-written program is checked where it is wrong. Every fault is a
ModelError that names line and column, what was expected and what stands there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar

from argosy.errors import ArgosyError, ModelError
from argosy.ir.builder import known_results
from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.op import Known, Op, op_class
from argosy.ir.printer import FORMAT_VERSION
from argosy.ir.program import Program
from argosy.ir.types import Type
from argosy.ir.validate import match_types
from argosy.ir.value_parser import Literals, ValueParser

__all__ = ["Literals", "parse_dim", "parse_program", "parse_type"]

T = TypeVar("T")


def parse_program(text: str, literals: Literals | None = None) -> Program:
    """The program that `text` describes.

    `literals` gives the constants that the text names by the SHA-256 of their content: a mapping from the
    digest, or a function of it. Raises ModelError where the text is no program.
    """
    try:
        return _Parser(text, literals or {}).program()
    except RecursionError:
        raise ModelError("the text is nested too deeply") from None


def parse_type(text: str, symbols: Mapping[str, Symbol]) -> Type:
    """The type that `text` describes over `symbols`; raises ModelError where it is none."""
    return _whole(text, symbols, _Parser.type)


def parse_dim(text: str, symbols: Mapping[str, Symbol]) -> DimLike:
    """The dim that `text` describes over `symbols`; raises ModelError where it is none."""
    return _whole(text, symbols, _Parser.dim)


def _whole(text: str, symbols: Mapping[str, Symbol], read: Callable[[_Parser], T]) -> T:
    try:
        parser = _Parser(text, {})
        parser.symbols.update({name: symbol_dim(symbol) for name, symbol in symbols.items()})
        found = read(parser)
    except RecursionError:
        raise ModelError("the text is nested too deeply") from None
    if parser.token.kind != "end":
        raise parser.fault("the end of the text")
    return found


class _Parser(ValueParser):
    """Statements: the header, modules and instructions."""

    def program(self) -> Program:
        metadata: dict[str, str] = {}
        if self.take_word("argosy"):
            at = self.position
            if self.integer() != FORMAT_VERSION:
                raise self.fault(f"version {FORMAT_VERSION} of the text form", at)
        while self.take_word("metadata"):
            key = self.string()
            self.expect("=")
            metadata[key] = self.string()
        while self.take_word("symbol"):
            self.declare_symbol()
        main = self.module()
        if self.token.kind != "end":
            raise self.fault("the end of the text")
        return Program(main, MappingProxyType(metadata))

    def module(self) -> Module:
        """`module name(parameters) { instructions return results }`."""
        self.expect_word("module")
        name = self.name()
        values: dict[str, Value] = {}
        parameters: list[Instruction] = []
        self.expect("(")
        while not self.take(")"):
            if parameters:
                self.expect(",")
            parameters.append(self._parameter(values, {p.names[0] for p in parameters}))
        self.expect("{")
        instructions: list[Instruction] = []
        while not self.take_word("return"):
            instructions.append(self._instruction(values))
        results: dict[str, Value] = {}
        while not self.take("}"):
            if results:
                self.expect(",")
            at = self.position
            result = self.name()
            if result in results:
                raise self.fault(f"a result other than {result!r}, which is returned already", at)
            self.expect("=")
            results[result] = self._operand(values)
        return Module(name, tuple(parameters), tuple(instructions), tuple(results.values()), tuple(results))

    def _parameter(self, values: dict[str, Value], taken: set[str]) -> Instruction:
        at = self.position
        text = self._result(values)
        self.expect(":")
        kind = self.type()
        names, source = self._origin((text,))
        if not names:
            raise self.fault(f'the name of the parameter {text}: as "…"')
        if names[0] in taken:
            raise self.fault(f"a parameter other than {names[0]!r}, which there is already", at)
        instruction = Instruction(Parameter(kind), (), (kind,), (None,), names, source)
        values[text] = instruction.result()
        return instruction

    def _instruction(self, values: dict[str, Value]) -> Instruction:
        texts: list[str] = []
        while self.token.kind == "value":
            texts.append(self._result(values, texts))
            if not self.take(","):
                break
        if texts:
            self.expect("=")
        at = self.position
        op: Op
        operands: tuple[Value | None, ...] = ()
        if self.take_word("constant"):
            op = Constant(self.literal(self.type()))
            types = op.infer()
        else:
            cls = self._op_class()
            if cls is Parameter:
                raise self.fault("an op other than a parameter, which stands in the module's first line", at)
            operands = self._operands(values)
            op = self._op(cls, at)
            types = self._types()
        if len(types) != len(texts):
            raise self.fault(f"{len(texts)} types, one for each result", at)
        names, source = self._origin(tuple(texts))
        known = self._check(op, operands, types, at)
        instruction = Instruction(op, operands, types, known, names, source)
        values.update(zip(texts, instruction.results, strict=True))
        return instruction

    def _check(
        self, op: Op, operands: tuple[Value | None, ...], types: tuple[Type, ...], at: int
    ) -> tuple[Known | None, ...]:
        """Known values of the results; raises ModelError where the op doesn't give results of these types."""
        with self._refusing(op.name, at):
            inferred = op.result_types(*operands)
            if match_types(inferred, types) is not None:
                return known_results(op, operands, types)
        found = ", ".join(map(str, types))
        raise ModelError(f"{op.name} gives {', '.join(map(str, inferred))}, not {found}", where=self.where(at))

    @contextmanager
    def _refusing(self, name: str, at: int) -> Iterator[None]:
        """Whatever an op raises is a fault of the text: ops trust their fields to hold what the types say."""
        try:
            yield
        except ArgosyError as error:
            raise ModelError(error.what, where=error.where, hint=error.hint).at(self.where(at)) from None
        except Exception as error:
            what = f"{name} can't have these attributes and operands: {type(error).__name__}: {error}"
            raise ModelError(what, where=self.where(at)) from error

    def _op_class(self) -> type[Op]:
        at = self.position
        name = self.word()
        try:
            cls = op_class(name)
        except ArgosyError as error:
            raise ModelError(error.what, where=self.where(at), hint=error.hint) from None
        version = self.integer() if self.take("@") else 1
        if version != cls.version:
            raise self.fault(f"version {cls.version} of {name}", at)
        return cls

    def _operands(self, values: dict[str, Value]) -> tuple[Value | None, ...]:
        operands: list[Value | None] = []
        self.expect("(")
        while not self.take(")"):
            if operands:
                self.expect(",")
            operands.append(None if self.take_word("_") else self._operand(values))
        return tuple(operands)

    def _op(self, cls: type[Op], at: int) -> Op:
        """An op of class `cls` from the attributes in braces; those left out have their defaults."""
        fields = {entry.name: entry for entry in dataclasses.fields(cls)}  # type: ignore[arg-type]
        given: dict[str, Any] = {}
        if self.take("{"):
            while not self.take("}"):
                if given:
                    self.expect(",")
                here = self.position
                name = self.word()
                if name not in fields or name in given:
                    open_fields = ", ".join(entry for entry in fields if entry not in given) or "none"
                    raise self.fault(f"an attribute of {cls.name} that is not given yet ({open_fields})", here)
                self.expect("=")
                given[name] = self.attribute()
        missing = [
            entry.name
            for entry in fields.values()
            if entry.name not in given
            and entry.default is dataclasses.MISSING
            and entry.default_factory is dataclasses.MISSING
        ]
        if missing:
            raise ModelError(f"{cls.name} needs the attributes {', '.join(missing)}", where=self.where(at))
        with self._refusing(cls.name, at):
            return cls(**given)

    def _types(self) -> tuple[Type, ...]:
        if not self.take(":"):
            return ()
        types = [self.type()]
        while self.take(","):
            types.append(self.type())
        return tuple(types)

    def _origin(self, results: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Names of the results (none at all where no result has one) and the source node."""
        names = ["" if text[1:].isdecimal() else text[1:] for text in results]
        if self.take_word("as"):
            for index in range(len(names)):  # no further: the comma after a parameter's name ends the parameter
                if index and not self.take(","):
                    break
                if not self.take_word("_"):
                    names[index] = self.string()
        source = self.string() if self.take_word("from") else ""
        return tuple(names) if any(names) else (), source

    def _result(self, values: dict[str, Value], before: list[str] | tuple[()] = ()) -> str:
        at = self.position
        text = self.value_name()
        if text in values or text in before:
            raise self.fault(f"a new value: {text} is defined already", at)
        return text

    def _operand(self, values: dict[str, Value]) -> Value:
        at = self.position
        text = self.value_name()
        value = values.get(text)
        if value is None:
            raise self.fault("a value defined before in this module", at)
        return value

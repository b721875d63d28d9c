"""What every program keeps at every moment, checked after each pass.

- Every operand and result is a result of an instruction before it in the same module; parameters stand in
  front and nowhere else; names of parameters and of results are unique.
- The types of an instruction are those that its op infers from its operands, up to the names of the
  symbols that it defines; what it knows of its results is what its op tells.
- A symbol has one bound in the whole program, and is defined before it is used: by a parameter, or by an
  instruction whose result has it as a dim of its own. Bodies see the symbols around them.
- Attributes are of the kinds that can be written to a file; modules in them keep all of this too.

Instructions never change, so one that was found good is good wherever it stands: a `Validator` looks again
only at what is new, and at how things hang together. What a builder has just inferred is not inferred once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.errors import ArgosyError, InternalError
from argosy.ir.builder import known_results
from argosy.ir.dim import Dim, DimLike, Symbol, lone_symbol, substitute, symbols_in
from argosy.ir.dtype import DType
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.op import Known
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type, map_dims, type_symbols

__all__ = ["Validator", "match_types", "validate"]


def validate(program: Program | Module, error: type[ArgosyError] = InternalError) -> None:
    """Check a program once. Raises `error` (InternalError: a defect of ours), naming the instruction."""
    Validator(error).check(program)


def match_types(inferred: tuple[Type, ...], declared: tuple[Type, ...]) -> dict[str, DimLike] | None:
    """The names that `declared` gives to the placeholders in `inferred`; None where the types differ otherwise."""
    if inferred == declared:
        return {}
    if len(inferred) != len(declared):
        return None
    names: dict[str, DimLike] = {}
    for new, old in zip(inferred, declared, strict=True):
        _bind_placeholders(new, old, names)
    renamed = tuple(map_dims(kind, lambda dim: substitute(dim, names)) for kind in inferred)
    return names if names and renamed == declared else None


def _bind_placeholders(new: Type, old: Type, names: dict[str, DimLike]) -> None:
    if isinstance(new, TensorType) and isinstance(old, TensorType):
        for placeholder, dim in zip(new.dims or (), old.dims or (), strict=False):
            left, right = lone_symbol(placeholder), lone_symbol(dim)
            if left is None or right is None or not left.name.startswith("?"):
                continue
            if (left.lower, left.upper) == (right.lower, right.upper):
                names.setdefault(left.name, dim)
    elif isinstance(new, MapType) and isinstance(old, MapType):
        _bind_placeholders(new.value, old.value, names)
    elif isinstance(new, (SequenceType, OptionalType)) and isinstance(old, (SequenceType, OptionalType)):
        _bind_placeholders(new.element, old.element, names)


class _Symbols(msgspec.Struct, frozen=True):
    """What a good instruction or module has to do with symbols: those that it needs, those that it defines."""

    needs: frozenset[str] = frozenset()
    defines: frozenset[str] = frozenset()
    within: frozenset[Symbol] = frozenset()


_NO_SYMBOLS: Final = _Symbols()


class Validator:
    """Checks a program after every pass, each instruction once; raises `error` where an invariant is broken.

    It holds on to the instructions of the program that it checked last, not to those of the ones before.
    """

    def __init__(self, error: type[ArgosyError] = InternalError) -> None:
        self._error = error
        self._good: dict[Instruction, _Symbols] = {}

    def check(self, program: Program | Module) -> None:
        """Check a program, or a module that is complete in itself."""
        main = program.main if isinstance(program, Program) else program
        walk = _Walk(self._error, self._good)
        symbols = walk.module(main, outermost=True)
        bounds: dict[str, Symbol] = {}
        for symbol in symbols.within:
            other = bounds.setdefault(symbol.name, symbol)
            if other != symbol:
                told = " and ".join(sorted(f"{s.lower}..{'' if s.upper is None else s.upper}" for s in (symbol, other)))
                raise self._error(f"the symbol {symbol} has two bounds: {told}", where=f"module {main.name}")
        self._good = walk.found


class _Walk:
    """One walk over a program: `good` is what was checked before, `found` collects what holds now."""

    def __init__(self, error: type[ArgosyError], good: Mapping[Instruction, _Symbols]) -> None:
        self._error = error
        self._good = good
        self.found: dict[Instruction, _Symbols] = {}
        self._met: dict[tuple[frozenset[Symbol], frozenset[str]], _Symbols] = {}

    def module(self, module: Module, *, outermost: bool = False) -> _Symbols:
        """Check a module. A body may need symbols from around it, the outermost module none."""
        self._check_interface(module)
        needs: set[str] = set()
        defines: set[str] = set()
        within: set[Symbol] = set()
        defined: dict[Instruction, int] = {}
        last = _NO_SYMBOLS
        for instruction in (*module.parameters, *module.instructions):
            for operand in instruction.operands:
                if operand is not None and not 0 <= operand.index < defined.get(operand.instruction, 0):
                    raise self._fault(f"its operand {operand!r} is not defined before it", instruction, module)
            if instruction in defined:
                raise self._fault("it stands twice in its module", instruction, module)
            symbols = self._instruction(instruction, module)
            self.found[instruction] = symbols
            defined[instruction] = len(instruction.types)
            if symbols is _NO_SYMBOLS or symbols is last:
                continue
            last = symbols
            missing = symbols.needs - defines
            if missing and outermost:
                raise self._fault(f"nothing before it defines the symbol {min(missing)}", instruction, module)
            needs |= missing
            defines |= symbols.defines
            within |= symbols.within
        for value in module.results:
            if not 0 <= value.index < defined.get(value.instruction, 0):
                raise self._error(f"the result {value!r} is not defined in it", where=f"module {module.name}")
        return _Symbols(frozenset(needs), frozenset(defines), frozenset(within)) if within else _NO_SYMBOLS

    def _check_interface(self, module: Module) -> None:
        where = f"module {module.name}"
        for parameter in module.parameters:
            if not isinstance(parameter.op, Parameter) or parameter.operands or len(parameter.names) != 1:
                raise self._error(f"{parameter!r} stands among the parameters", where=where)
        for noun, names in (("parameters", module.parameter_names), ("results", module.result_names)):
            if len(set(names)) != len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise self._error(f"two {noun} are called {twice!r}", where=where)
        if len(module.results) != len(module.result_names):
            raise self._error(f"{len(module.results)} results have {len(module.result_names)} names", where=where)
        for instruction in module.instructions:
            if isinstance(instruction.op, Parameter):
                raise self._fault("a parameter stands among the instructions", instruction, module)

    def _instruction(self, instruction: Instruction, module: Module) -> _Symbols:
        """Check one instruction, the modules in it always, the rest if it is new."""
        inner = [self.module(body) for body in instruction.op.modules()]
        known = self._good.get(instruction) or self.found.get(instruction)
        if known is not None and not inner:
            return known
        try:
            own = known or self._check(instruction)
        except _Fault as fault:
            raise self._fault(str(fault), instruction, module) from None
        except ArgosyError as error:
            raise self._fault(f"its op refuses it: {error.what}", instruction, module) from error
        except Exception as error:
            raise self._fault(f"its op fails on it: {type(error).__name__}: {error}", instruction, module) from error
        for body in inner:
            own = _Symbols(own.needs | (body.needs - own.defines), own.defines, own.within | body.within)
        return own

    def _check(self, instruction: Instruction) -> _Symbols:
        op, types = instruction.op, instruction.types
        if len(instruction.known) != len(types) or len(instruction.names) not in (0, len(types)):
            counts = f"{len(instruction.known)} known values and {len(instruction.names)} names"
            raise _Fault(f"it has {counts} for {len(types)} results")
        within: set[Symbol] = set()
        for name, value in op.attributes().items():
            _check_attribute(name, value, within)
        defines = instruction.defines
        if defines is None:
            defines = self._infer(instruction)
        for kind in types:
            within |= type_symbols(kind)
        if not within:
            return _NO_SYMBOLS
        if isinstance(op, Parameter):
            return _Symbols(frozenset(), frozenset(symbol.name for symbol in within), frozenset(within))
        return self._symbols(frozenset(within), frozenset(defines))

    @staticmethod
    def _infer(instruction: Instruction) -> tuple[str, ...]:
        """Check what an instruction is said to be against what its op infers; the symbols that it defines."""
        op, types = instruction.op, instruction.types
        inferred = op.result_types(*instruction.operands)
        names = match_types(inferred, types)
        if names is None:
            raise _Fault(f"its types are {_listed(types)}, its op infers {_listed(inferred)}")
        for found, held in zip(known_results(op, instruction.operands, types), instruction.known, strict=True):
            if not _same_known(found, held):
                raise _Fault(f"it knows {_shown(held)} of a result, its op tells {_shown(found)}")
        return tuple(symbol.name for dim in names.values() for symbol in symbols_in(dim))

    def _symbols(self, within: frozenset[Symbol], defines: frozenset[str]) -> _Symbols:
        """One object for all instructions that mention and define the same."""
        key = within, defines
        if key not in self._met:
            self._met[key] = _Symbols(frozenset(symbol.name for symbol in within) - defines, defines, within)
        return self._met[key]

    def _fault(self, what: str, instruction: Instruction, module: Module) -> ArgosyError:
        where = instruction.source
        if not where:
            order = (*module.parameters, *module.instructions)
            results = ", ".join(repr(name) for name in instruction.names if name)
            where = f"{instruction.op.name} (instruction {order.index(instruction)}{' → ' if results else ''}{results})"
        return self._error(what, where=f"module {module.name}: {where}")


class _Fault(Exception):  # noqa: N818 - never leaves this module
    """What is wrong with an instruction; the caller says which."""


def _check_attribute(name: str, value: Any, within: set[Symbol]) -> None:
    """Raise where the text form and files can't hold `value`; collect the symbols in it."""
    if value is None or type(value) in (bool, int, float, str) or isinstance(value, (DType, Formula, Module)):
        return
    if isinstance(value, tuple):
        for element in value:
            _check_attribute(name, element, within)
    elif isinstance(value, Dim):
        within |= symbols_in(value)
    elif isinstance(value, (TensorType, SequenceType, OptionalType, MapType)):
        within |= type_symbols(value)
    elif isinstance(value, Literal):
        held = value.dtype.byte_size(1 if value.is_splat else value.size)
        if value.dtype.kind != "string" and value.nbytes != held:
            raise _Fault(f"{value!r} holds {value.nbytes} bytes instead of {held}")
    else:
        raise _Fault(f"its attribute {name} holds {value!r}, a {type(value).__name__}, which files can't hold")


def _same_known(left: Known | None, right: Known | None) -> bool:
    if left is None or right is None:
        return left is right
    # NaN, which differs from itself, is the same knowledge twice.
    return left.shape == right.shape and all(
        a is b or a == b or (a != a and b != b)  # noqa: PLR0124
        for a, b in zip(left.flat, right.flat, strict=True)
    )


def _shown(known: Known | None) -> str:
    return "nothing" if known is None else str(known.tolist())


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "none"

"""One case: a damaged model made from a number, and what becomes of it."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from argosy.errors import ArgosyError, InternalError, ModelError, UnsupportedError
from argosy.frontends.onnx import load
from argosy.ir import Env, TensorType
from argosy.ir import dim as dims
from argosy.ir.dim import symbols_in
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program
from argosy.ir.types import Type
from argosy.ir.validate import validate
from tests.artifact.mutation import damage_bytes
from tests.fuzz.model_damage import damage_model
from tests.fuzz.random_nodes import random_model
from tests.fuzz.seeds import SEEDS, seed

__all__ = ["Case", "Outcome", "arguments_of", "make_case", "read", "run"]

_ELEMENTS: Final = 4096
"""Elements that the inputs of a model may have for it to be run."""
_SIZES: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged model: `name` says how it came about, `number` makes it again."""

    number: int
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case. `kind` sums up; a failure says `why` it is one."""

    kind: str
    why: str = ""


def make_case(number: int) -> Case:
    """Case `number`: the same on every machine."""
    rng = random.Random(number)
    way = rng.random()
    if way < 0.25:
        return Case(number, "random nodes", random_model(rng).SerializeToString())
    name = rng.choice(SEEDS)
    if way < 0.4:
        return Case(number, f"bytes of {name}", damage_bytes(seed(name).SerializeToString(), rng))
    model = onnx.ModelProto()
    model.CopyFrom(seed(name))
    damage_model(model, rng)
    return Case(number, name, model.SerializeToString())


def read(case: Case, folder: Path) -> Program | Outcome:
    """Import the case, and check what comes of it against the rules of the IR.

    `folder` is where the model lies, with files that external data may name. A failure is anything but a program
    or a ModelError: also an error that says that we are to blame.
    """
    source: Any = case.data
    if b"location" in case.data:
        source = folder / "model.onnx"
        source.write_bytes(case.data)
    try:
        program = load(source)
    except InternalError as error:
        return Outcome("failure", f"import: {error}")
    except UnsupportedError:
        return Outcome("unsupported")
    except ModelError as error:
        return Outcome("refused: " + _shape_of(error.what)) if error.what else Outcome("failure", "an empty message")
    except Exception as error:  # noqa: BLE001 - this is what we look for
        return Outcome("failure", f"import: {type(error).__name__}: {error}")
    try:
        validate(program)
    except ArgosyError as error:
        return Outcome("failure", f"validation: {error}")
    return program


def _shape_of(what: str) -> str:
    """A message without its numbers and names."""
    return re.sub(r"'.*?'|\"[^\"]*\"|[-\d.]+|\[.*?\]", "_", what)[:60]


def run(case: Case, program: Program) -> Outcome:
    """Run a program on random inputs, where these are small. A model may ask for more memory than there is."""
    arguments = arguments_of(program, random.Random(case.number))
    if arguments is None:
        return Outcome("imported")
    try:
        Interpreter(program.main).run(arguments, Env())
    except InternalError as error:
        return Outcome("failure", f"run: {error}") if "MemoryError" not in error.what else Outcome("run: too large")
    except ArgosyError as error:
        return Outcome("run: refused", error.what)
    except MemoryError:
        return Outcome("run: too large")
    except Exception as error:  # noqa: BLE001 - this is what we look for
        return Outcome("failure", f"run: {type(error).__name__}: {error}")
    return Outcome("run")


def arguments_of(program: Program, rng: random.Random) -> list[Any] | None:
    """Values for the inputs; None where they would be large or are no tensors."""
    symbols: dict[str, int] = {}
    values: list[Any] = []
    for kind in program.inputs.values():
        value = _argument(kind, symbols, rng)
        if value is None:
            return None
        values.append(value)
    return values


def _argument(kind: Type, symbols: dict[str, int], rng: random.Random) -> Any:
    if not isinstance(kind, TensorType):
        return None
    shape = []
    for dim in kind.dims or ():
        if not isinstance(dim, int):
            for symbol in symbols_in(dim):
                symbols.setdefault(symbol.name, rng.choice(_SIZES))
        shape.append(dims.evaluate(dim, symbols))
    if np.prod([max(size, 1) for size in shape], dtype=float) > _ELEMENTS:
        return None
    count = int(np.prod(shape))
    if kind.dtype.name == "string":
        texts = np.empty(count, object)
        texts[:] = [rng.choice(("a", "", "B c", "é")) for _ in range(count)]
        return texts.reshape(shape)
    numbers = np.array([rng.choice((0, 1, 2, -1, 3, 5)) for _ in range(count)], np.float32)
    with np.errstate(all="ignore"):
        return numbers.astype(kind.dtype.numpy).reshape(shape)

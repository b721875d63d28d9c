"""What decides whether a case still fails: a verification in a process beside this one, or a command of the user."""

from __future__ import annotations

import dataclasses
import logging
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from argosy.compiler import compile_program, load_onnx
from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.child import Child, EndedError
from argosy.debugging.reduction.nodes import nodes_of
from argosy.debugging.reduction.outcome import Outcome
from argosy.errors import ArgosyError, BranchError, EnvironmentError_, UsageError
from argosy.frontends.onnx import ImportOptions, load
from argosy.inputs import write_npz
from argosy.ir.program import Program
from argosy.options import CompileOptions, Dimensions
from argosy.runtime.selection import select
from argosy.targets.base import Target
from argosy.verification import Tolerance, make_reference, verify

if TYPE_CHECKING:
    import onnx

__all__ = ["Check", "CommandCheck", "Counted", "Verification", "takes_driver"]

log = logging.getLogger("argosy.reduce")

_NOT_FAILURES = (UsageError, EnvironmentError_, MemoryError)
"""What the user or the machine does wrong, not the code."""


class Check(Protocol):
    """Whether a model with inputs fails, in the way that is looked into."""

    def __call__(self, model: onnx.ModelProto, inputs: Mapping[str, Any], /) -> bool:
        """True where it does. An error of Argosy's means no; what else it raises ends the reduction."""
        ...


@dataclass(frozen=True, slots=True)
class Verification:
    """One way to compile a model, to run it and to compare: what `argosy.verify` takes."""

    targets: tuple[Target, ...]
    device: str | None
    exact: bool
    against: str
    tolerance: Tolerance
    options: CompileOptions

    def outcome(self, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> Outcome:
        """Verify here. Raises where it is not the model or the code that fails."""
        options = self.of_model(model).options
        names = _names(model)
        try:
            program = _program(model, options.dims)
            artifact = compile_program(program, self.targets, options)
        except _NOT_FAILURES:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the compiler may raise
            return Outcome.of_error(error, names)
        variants, where = artifact.variants, artifact.where
        select(variants, device=self.device, exact=self.exact, native_code=True, slim=artifact.is_slim, where=where)
        try:
            report = verify(
                program,
                artifact,
                device=self.device,
                exact=self.exact,
                against=make_reference(self.against, model, program),
                dims=options.dims,
                inputs=inputs,
                tolerance=self.tolerance,
            )
        except _NOT_FAILURES:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the code may do; something that fits the device is there
            return Outcome.of_error(error, names)
        return Outcome.of_report(report)

    def of_model(self, model: onnx.ModelProto) -> Verification:
        """The same for a part of the model, which has some of the dims alone."""
        has = {dim.dim_param for entry in model.graph.input for dim in entry.type.tensor_type.shape.dim}
        dims = Dimensions(tuple(request for request in self.options.dims.dims if request.name in has))
        return dataclasses.replace(self, options=dataclasses.replace(self.options, dims=dims, reproducers=False))

    def outcome_in(self, child: Child, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> Outcome:
        """Verify in a process beside this one, which may crash or hang."""
        try:
            outcome = child.run(partial(_outcome, self, model.SerializeToString(), dict(inputs)))
        except EndedError as ended:
            return ended.outcome
        if outcome.spoils:
            child.end()
        return outcome

    def fails_like(self, first: Outcome, child: Child) -> Check:
        """The check that looks for the same failure: each in a new process where it is one that no process survives."""

        def check(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
            if first.spoils:
                child.end()
            return self.outcome_in(child, model, inputs).is_like(first)

        return check


def takes_driver(targets: Iterable[Target], device: str | None) -> bool:
    """Whether what is compiled for the targets runs by a driver."""
    return any(target.name == "gpu" for target in targets) and not (device or "").startswith("emulated")


def _outcome(verification: Verification, raw: bytes, inputs: Mapping[str, Any]) -> Outcome:
    import onnx  # noqa: PLC0415 - an optional extra

    return verification.outcome(onnx.ModelProto.FromString(raw), inputs)


def _program(model: onnx.ModelProto, dims: Dimensions) -> Program:
    """What `load_onnx` reads; that leaves a reproducer where it fails."""
    try:
        return load(model, ImportOptions(dims))
    except BranchError:
        return load_onnx(load(model), dims=dims)


def _names(model: onnx.ModelProto) -> Collection[str]:
    graph = model.graph
    nodes = [name for node in nodes_of(graph) for name in (node.name, *node.input, *node.output)]
    values = [entry.name for entry in (*graph.input, *graph.output, *graph.initializer)]
    return {name for name in (*nodes, *values) if name}


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """A command of the user that exits with 0 where a case is of interest.

    `{model}` and `{inputs}` in its words stand for the files; where there is neither, the model's is the last word.
    """

    words: tuple[str, ...]
    seconds: float

    @staticmethod
    def of(command: str, seconds: float) -> CommandCheck:
        """The check by a command line. Raises UsageError for one that is empty or not quoted well."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"the check {command!r} can't be read: {error}") from None
        if not words:
            raise UsageError("the check is an empty command", hint="--check 'python mine.py {model} {inputs}'")
        if not any(place in word for word in words for place in ("{model}", "{inputs}")):
            words.append("{model}")
        return CommandCheck(tuple(words), seconds)

    def __call__(self, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
        return self.run(model, inputs) == 0

    def run(self, model: onnx.ModelProto, inputs: Mapping[str, Any]) -> int | None:
        """The exit code of the command; None where it took too long. Raises UsageError where it can't be started."""
        with tempfile.TemporaryDirectory(prefix="argosy-reduce-") as folder:
            paths = {"{model}": str(Path(folder, "model.onnx")), "{inputs}": str(Path(folder, "inputs.npz"))}
            Path(paths["{model}"]).write_bytes(model.SerializeToString())
            write_npz(paths["{inputs}"], inputs)
            words = list(_filled(self.words, paths))
            try:
                done = subprocess.run(words, capture_output=True, timeout=self.seconds, check=False)  # noqa: S603
            except subprocess.TimeoutExpired:
                return None
            except OSError as error:
                raise UsageError(f"the check can't be started: {error.strerror}", where=words[0]) from None
            return done.returncode


def _filled(words: Sequence[str], paths: Mapping[str, str]) -> Iterator[str]:
    """The words with paths in place of what stands for them."""
    for word in words:
        told = word
        for place, path in paths.items():
            told = told.replace(place, path)
        yield told


class Counted:
    """A check of cases that remembers its answers, and after `most` of them says no to all others."""

    def __init__(self, check: Check, most: int) -> None:
        self._check = check
        self._most = most
        self._answers: dict[str, bool] = {}
        self.exhausted = False

    @property
    def spent(self) -> int:
        """Checks so far."""
        return len(self._answers)

    def __call__(self, case: Case | None) -> bool:
        if case is None or self.exhausted:
            return False
        key = case.digest()
        if key not in self._answers:
            if self.spent >= self._most:
                self.exhausted = True
                return False
            log.info(
                "check %d of %d at most: %d nodes",
                self.spent + 1,
                self._most,
                sum(1 for _ in nodes_of(case.model.graph)),
            )
            with _silence():
                try:
                    self._answers[key] = self._check(case.model, case.inputs)
                except ArgosyError as error:
                    log.debug("not of interest: %s", error)
                    self._answers[key] = False
        return self._answers[key]


@contextmanager
def _silence() -> Iterator[None]:
    """Keep warnings about models that nobody wrote out of the log."""
    logger = logging.getLogger("argosy")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)

"""A session: an artifact made ready on this machine, to be run any number of times from any thread."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import decode_symbols
from argosy.artifact.manifest import ValueInfo
from argosy.artifact.weights import Supplied
from argosy.errors import DeviceError, InternalError, ModelError, UsageError
from argosy.host_cpu import physical_cores
from argosy.ir.dim import lone_symbol
from argosy.ir.dtype import dtype_of
from argosy.ir.interpreter import Interpreter, Observer
from argosy.ir.op import Env
from argosy.ir.parser import parse_type
from argosy.ir.types import TensorType, Type
from argosy.registry import did_you_mean
from argosy.runtime.devices import load_variant
from argosy.runtime.executor import Runnable
from argosy.runtime.forking import survive_forks
from argosy.runtime.inputs import check_inputs
from argosy.runtime.selection import Choice, select
from argosy.runtime.shared_weights import SharedWeights

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from argosy.runtime.gpu.timing import FixedLaunches

__all__ = ["Session"]


class Session:
    """Runs an artifact on this machine.

    `source` is an Artifact, a path or bytes. `device` chooses among the devices (by default the best one that
    fits), `threads` and `max_concurrency` bound what one run and all runs together use, `weights` supplies
    weights that the artifact leaves out, `exact` refuses variants of another arch, `native_code=False` runs
    `ref` only, `checked` also looks for what emulated code reads before it is written and for races between its
    workgroups. Raises ArtifactError for a bad artifact, DeviceError where nothing fits.
    """

    def __init__(
        self,
        source: Artifact | str | os.PathLike[str] | bytes,
        *,
        device: str | None = None,
        threads: int | None = None,
        max_concurrency: int | None = None,
        weights: Supplied | None = None,
        exact: bool = False,
        native_code: bool = True,
        checked: bool = False,
    ) -> None:
        for name, value in (("threads", threads), ("max_concurrency", max_concurrency)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}, expected at least 1")
        self._artifact = source if isinstance(source, Artifact) else Artifact.open(source, weights=weights)
        self._threads, self._checked = threads, checked
        self._device = device or ""
        manifest = self._artifact.manifest
        symbols = decode_symbols(manifest.symbols)
        self.inputs: dict[str, Type] = _types(manifest.inputs, symbols)
        self.outputs: dict[str, Type] = _types(manifest.outputs, symbols)
        self._selection = select(
            self._artifact.variants,
            device=device,
            exact=exact,
            native_code=native_code,
            slim=self._artifact.is_slim,
            where=self._artifact.where,
        )
        self._fitting = self._selection.fitting
        self._sizes = _sizes_of(self.inputs) if any(not choice.is_general for choice in self._fitting) else ()
        self._loaded: dict[str, Runnable] = {}
        self._shared = SharedWeights() if self._sizes else None
        self._max_concurrency = max_concurrency
        self._runs = itertools.count()
        self.after_fork()
        survive_forks(self)
        self._runnable(self._general)

    def after_fork(self) -> None:
        """Have locks and threads of its own; a forked child calls this."""
        self._lock = Lock()
        self._gate = BoundedSemaphore(self._max_concurrency) if self._max_concurrency else None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def _general(self) -> Choice:
        """The best choice that takes every size."""
        fitting = self._fitting
        return next((choice for choice in fitting if choice.is_general), fitting[0])

    @property
    def artifact(self) -> Artifact:
        """What it runs."""
        return self._artifact

    @property
    def device(self) -> str:
        """The device that was asked for, or an empty string."""
        return self._device

    @property
    def threads(self) -> int:
        """Threads of one run on the CPU."""
        return self._threads or physical_cores()

    @property
    def variant(self) -> str:
        """What runs, in words. Specialised variants are chosen at each run, by the sizes of the inputs."""
        return self._general.words

    @property
    def why(self) -> str:
        """The choice among the variants, a line each with its reason."""
        return str(self._selection)

    @property
    def memory(self) -> int:
        """Bytes of the weights that the artifact holds; what runs is mapped, not copied. On a GPU, bytes held there."""
        if hasattr(self._runnable(self._general), "has_streams"):
            return sum(getattr(found, "memory", 0) for found in self._loaded.values())
        return self._artifact.weight_bytes

    def run(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Run once: values by output name, in the model's order, or those named in `outputs`.

        Tensors are numpy arrays, strings object arrays, sequences lists, maps dicts, an absent optional None. Raises
        UsageError naming what was expected where an input does not fit. Safe to call from many threads.
        """
        return self.observe(inputs, None, outputs)

    def observe(
        self,
        inputs: Mapping[str, Any],
        observer: Observer | None,
        outputs: Sequence[str] | None = None,
        *,
        number: int | None = None,
    ) -> dict[str, Any]:
        """Like `run`, and calls `observer` with each instruction and its results as they are computed.

        Random numbers are those of the run of this `number`, from 0 on; by default it is the next one.
        """
        return self._run(inputs, observer, outputs, number=number)

    def choice(self, inputs: Mapping[str, Any]) -> Choice:
        """What runs these inputs: the variant for their sizes, if there is one."""
        return self._choose(check_inputs(inputs, self.inputs))

    @contextmanager
    def fixed_launches(self, inputs: Mapping[str, Any]) -> Iterator[FixedLaunches]:
        """The launches of a run on a GPU, to be timed one by one or done again without copies: for those who measure.

        Raises DeviceError where no GPU runs, UsageError where the launches depend on what a run computes or the host
        takes part.
        """
        arguments = check_inputs(inputs, self.inputs)
        runnable = self._runnable(self._choose(arguments))
        if not hasattr(runnable, "fixed_launches"):
            raise DeviceError(f"{self.variant} launches nothing on a GPU", hint="argosy.perf times what runs elsewhere")
        with self._gate or nullcontext(), runnable.fixed_launches(arguments) as found:
            yield found

    def _run(
        self,
        inputs: Mapping[str, Any],
        observer: Observer | None,
        outputs: Sequence[str] | None,
        stream: int | None = None,
        number: int | None = None,
    ) -> dict[str, Any]:
        arguments = check_inputs(inputs, self.inputs)
        wanted = self._wanted(outputs)
        runnable = self._runnable(self._choose(arguments))
        env = Env({}, next(self._runs) if number is None else number)
        if not hasattr(runnable, "has_streams"):
            arguments = [_on_host(argument) for argument in arguments]
        more = () if stream is None else (stream,)
        try:
            with self._gate or nullcontext():
                results = runnable.run(arguments, env, observer, *more)
        except ModelError as error:  # the model was good when it was compiled: what it was fed with is not
            raise UsageError(error.what, where=error.where, hint=error.hint) from error
        named = dict(zip(self.outputs, results, strict=True))
        return {name: _own(named[name], arguments, self.outputs[name], name) for name in wanted}

    def run_async(self, inputs: Mapping[str, Any], stream: Any = None) -> Future[dict[str, Any]]:
        """Start a run and return a future for its outputs.

        With a `stream` of a GPU (its handle, or torch's or cupy's object) the future is done at once, the outputs stay
        on the GPU, the run comes behind what is in the stream, and later work of the stream behind the run. Inputs on
        the GPU must not be changed before that by others.
        """
        if stream is not None:
            runnable = self._runnable(self._general)
            if not hasattr(runnable, "has_streams"):
                raise DeviceError(f"{self.variant} has no streams", hint="leave the stream out")
            from concurrent.futures import Future as Done  # noqa: PLC0415 - see below

            done: Future[dict[str, Any]] = Done()
            handle = int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
            done.set_result(self._run(inputs, None, None, handle))
            return done
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - most sessions never need it

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="argosy")
            pool = self._pool
        return pool.submit(self.run, inputs)

    def _wanted(self, outputs: Sequence[str] | None) -> Sequence[str]:
        if outputs is None:
            return list(self.outputs)
        for name in outputs:
            if name not in self.outputs:
                raise UsageError(
                    f"the model has no output {name!r}",
                    hint=did_you_mean(name, list(self.outputs)) or f"it gives: {', '.join(self.outputs)}",
                )
        return outputs

    def _choose(self, arguments: Sequence[Any]) -> Choice:
        """The specialised variant whose dims these arguments have, else the general one."""
        fitting = self._fitting
        if not self._sizes:
            return fitting[0]
        sizes = {name: np.shape(arguments[place])[axis] for name, place, axis in self._sizes}
        for choice in fitting:
            if choice.variant is None or all(sizes.get(name) == size for name, size in choice.variant.dims.items()):
                return choice
        raise DeviceError(
            f"no variant takes these sizes: {', '.join(f'{name}={size}' for name, size in sizes.items())}",
            where=self._artifact.where,
        )

    def _runnable(self, choice: Choice) -> Runnable:
        key = choice.variant.key if choice.variant else ""
        found = self._loaded.get(key)
        if found is None:
            with self._lock:
                found = self._loaded.get(key)
                if found is None:
                    found = self._loaded[key] = (
                        load_variant(
                            self._artifact,
                            choice.variant,
                            self._threads,
                            self._device,
                            self._shared,
                            checked=self._checked,
                        )
                        if choice.variant
                        else Interpreter(self._artifact.program().main)
                    )
        return found


def _types(infos: Sequence[ValueInfo], symbols: Mapping[str, Any]) -> dict[str, Type]:
    return {info.name: parse_type(info.type, symbols) for info in infos}


def _sizes_of(inputs: Mapping[str, Type]) -> tuple[tuple[str, int, int], ...]:
    """Where the size of each symbol is read off: its name, the place of an input, an axis."""
    found: dict[str, tuple[str, int, int]] = {}
    for place, kind in enumerate(inputs.values()):
        for axis, dim in enumerate((kind.dims or ()) if isinstance(kind, TensorType) else ()):
            symbol = lone_symbol(dim)
            if symbol is not None:
                found.setdefault(symbol.name, (symbol.name, place, axis))
    return tuple(found.values())


def _own(value: Any, arguments: Sequence[Any], kind: Type, name: str) -> Any:
    """A result that is the caller's: contiguous, writable, and not one of the arguments or a weight."""
    if isinstance(value, list):
        return [_own(item, arguments, getattr(kind, "element", kind), name) for item in value]
    if isinstance(value, dict):
        return {key: _own(item, arguments, getattr(kind, "value", kind), name) for key, item in value.items()}
    if value is None or isinstance(value, (str, np.generic)):
        return value
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__"):
        return value  # it lies on a GPU, in memory of its own
    array = np.asarray(value)
    if isinstance(kind, TensorType) and array.dtype is not kind.dtype.numpy and dtype_of(array.dtype) is not kind.dtype:
        raise InternalError(f"computed as {array.dtype}, declared {kind}", where=f"output {name!r}")
    flags = array.flags
    if not flags.writeable or not flags.c_contiguous:
        return array.copy(order="C")
    # What owns its elements can share them with an argument only by being one, or what one is a view of.
    for argument in arguments:
        if argument is array or (not flags.owndata and _overlap(argument, array)) or _base(argument) is array:
            return array.copy(order="C")
    return array


def _on_host(argument: Any) -> Any:
    """An argument as what runs on the host takes it."""
    if not isinstance(argument, np.ndarray) and hasattr(argument, "__dlpack_device__"):
        return argument.numpy()  # it lies on a GPU
    return argument


def _overlap(argument: Any, array: Any) -> bool:
    return isinstance(argument, np.ndarray) and np.may_share_memory(argument, array)


def _base(argument: Any) -> Any:
    return argument.base if isinstance(argument, np.ndarray) else None

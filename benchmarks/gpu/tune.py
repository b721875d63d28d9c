"""Times the ways to do each product, convolution and attention of a model on a device, inside the model.

`python -m benchmarks.gpu.tune pack FOLDER` compiles without a device, `… run FOLDER` measures there. Number `n` of a
pack is the model with the `n`-th candidate for each of its problems; number 0 has what the cost model chooses. What
runs is checked against ONNX Runtime in float32 as a whole, and each kernel's result against number 0's. Each number is
measured in a process of its own, which is stopped when it hangs. What wins is for the cost model to learn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import select
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
import onnx

import argosy
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.plan import PLAN, LaunchStep, steps_in
from argosy.ir.module import Instruction
from argosy.ir.op import Env
from argosy.ir.program import Program
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu import lower, problem
from argosy.targets.gpu.codegen.pipelined import PipelinedTile
from argosy.targets.gpu.codegen.pipelined_attention import FlashTile
from argosy.targets.gpu.codegen.summing import Tile
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solution import Problem, Solution, Steps
from argosy.targets.gpu.variant import compiled_variant
from argosy.targets.lowering.accesses import present
from benchmarks.gpu.cases import PRECISION, known_gpu
from benchmarks.gpu.parts import ATTENTIONS, Attended
from benchmarks.models import catalog

_SECONDS: Final = 90
"""After which a process that measures is stopped."""
_SAMPLE: Final = 4096
_REPLAYS: Final = 10
_TUNED: Final = ("dot", "conv", "attention")


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that is tuned: as the catalogue has it, with some of its sizes changed."""

    name: str
    model: str
    dims: Mapping[str, int]
    changes: Mapping[str, int] = field(default_factory=dict)

    def onnx(self) -> onnx.ModelProto:
        """The model."""
        known = {each.name: each for each in (*ATTENTIONS, *_MORE)}
        return known[self.model].model() if self.model in known else catalog.make(self.model, **self.changes)

    def feeds(self) -> Mapping[str, Any]:
        """Inputs, of any sizes."""
        if self.model.startswith("attention"):
            draw = np.random.default_rng(0).standard_normal
            return {name: draw(1 << 20, np.float32).astype(np.float16) for name in "qkv"}
        return catalog.feeds(self.model, dict(self.dims))

    def program(self) -> Program:
        """The program with its sizes bound."""
        return argosy.load_onnx(self.onnx(), dims=dict(self.dims))

    def module(self) -> Any:
        """What the lowering gets."""
        return PassManager(tuple(pipeline(CompileOptions(precision=PRECISION)))).run(self.program().main)


_MORE: Final = tuple(
    Attended(*sizes, causal)
    for sizes in ((4, 12, 2048, 64), (8, 12, 512, 64), (1, 32, 4096, 128))
    for causal in (False, True)
)
SUBJECTS: Final = (
    Subject("bert-b32", "bert_base", {"batch": 32, "sequence": 128}, {"layers": 2}),
    Subject("resnet-b32", "resnet50", {"batch": 32}),
    *(Subject(each.name, each.name, {}) for each in (*ATTENTIONS, *_MORE)),
    Subject("bert-b1", "bert_base", {"batch": 1, "sequence": 128}, {"layers": 2}),
    Subject("resnet-b1", "resnet50", {"batch": 1}),
)

_PLAIN: Final = tuple(
    Tile(high, wide, deep, warps, stages)
    for high, wide, deep, warps, stages in (
        (128, 128, 64, 8, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4), (128, 256, 64, 8, 3),
        (128, 128, 64, 4, 3),
    )
)  # fmt: skip
_PIPELINED: Final = tuple(
    PipelinedTile(high, widths, min((225 * 1024 - 4 * high * sum(widths)) // (128 * (high + sum(widths))), 8))
    for high, widths in (
        (128, (128,)), (128, (128, 64)), (64, (128,)), (64, (256,)), (64, (128, 64)), (128, (64,)), (64, (64,)),
    )
)  # fmt: skip
_ATTENTION: Final = tuple(
    Tile(high, wide, 16, warps, stages)
    for high, wide, warps, stages in (
        (64, 64, 4, 2), (64, 64, 4, 3), (128, 64, 4, 3), (128, 64, 8, 2), (128, 64, 8, 3), (64, 128, 4, 2),
        (128, 128, 8, 2), (64, 32, 4, 3), (64, 128, 8, 2), (128, 128, 4, 2), (128, 32, 4, 4), (32, 64, 2, 2),
    )
)  # fmt: skip
_FLASH: Final = tuple(
    FlashTile(keys, stages, True, pinned, split)
    for keys, stages in ((128, 2), (64, 4))
    for pinned in (False, True)
    for split in (False, True)
)
_FLAT: Final = tuple(
    Tile(high, 64, 32, warps, stages)
    for high, warps, stages in ((128, 4, 4), (256, 8, 3), (128, 8, 4), (256, 4, 3), (64, 4, 4), (256, 8, 4))
)
"""For images of few channels."""
_CANDIDATES: Final = {
    "matrix product": _PLAIN,
    "matrix convolution": _PLAIN,
    "pipelined product": _PIPELINED,
    "pipelined convolution": _PIPELINED,
    "flash": _ATTENTION,
    "pipelined attention": _FLASH,
}


class _Forced(Solution):
    """A solution that has one config, and remembers what it was for."""

    def __init__(self, solution: Solution, config: Any, notes: dict[str, tuple[str, str]]) -> None:
        self.name = solution.name  # type: ignore[misc]
        self._solution, self._config, self._notes = solution, config, notes

    def applies(self, problem: Problem) -> str:
        return self._solution.applies(problem) if self._config is None else ""  # whether it pays is to be seen

    def configs(self, problem: Problem) -> Sequence[Any]:
        return self._solution.configs(problem)[:1] if self._config is None else (self._config,)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self._solution.lower(problem, config, steps)
        kernel = steps.kernels[-1]  # type: ignore[attr-defined]
        self._notes[kernel.entry] = (_words(problem), f"{self.name} {config}")


def _words(problem: Problem) -> str:
    """A problem in words: the anchor, its operands and result, how many tensors beside it are read."""
    anchor = problem.anchor_instruction
    shapes = " ".join("x".join(map(str, present(anchor, place).shape)) for place in (0, 1))
    others = sum(each.result().shape == anchor.result().shape for each in problem.module.parameters)
    strides = getattr(anchor.op, "strides", None) or (1,)
    stride = f" s{strides[0]}" if strides[0] > 1 else ""
    return f"{anchor.op.name} {shapes}{stride} -> {'x'.join(map(str, anchor.result().shape))}{' +' * (others > 0)}"


@contextmanager
def _number(number: int, only: str, notes: dict[str, tuple[str, str]]) -> Iterator[None]:
    """Let the lowering take the candidates of a number, where a problem has so many."""
    whole = problem.Problems.solutions

    def chosen(problems: problem.Problems, instruction: Instruction) -> Sequence[Solution]:
        found = whole(problems, instruction)
        asked = problems.of(instruction, ())
        if asked.anchor is None or not set(_TUNED) & set(found[0].anchors if found else ()):
            return found
        if not re.search(only, _words(asked)):
            return found
        # The plain ways first, as those are in use everywhere.
        ways = sorted((way for way in found if way.rank >= 0), key=lambda way: way.rank)
        ranked: list[tuple[Solution, Any]] = [(way, None) for way in ways[:1]]
        ranked += [(way, config) for way in ways for config in _CANDIDATES.get(way.name, ())]
        if asked.anchor.op.name == "conv" and present(asked.anchor, 0).shape[1] in range(16):
            ranked = [ranked[0], *((ranked[0][0], config) for config in _FLAT)]
        first = ranked[number] if number < len(ranked) else ranked[0]
        return [_Forced(*first, notes), *(_Forced(way, None, notes) for way in ways)]

    with mock.patch.object(problem.Problems, "solutions", chosen):
        yield


def pack(folder: Path, arch: str, subjects: Sequence[Subject], numbers: Sequence[int], only: str) -> None:
    """Write for each subject a file with the plans of all numbers and their code."""
    folder.mkdir(parents=True, exist_ok=True)
    row = known_gpu(arch)
    for subject in subjects:
        module, options = subject.module(), CompileOptions(precision=PRECISION)
        path, written = folder / f"{subject.name}.zip", set[str]()
        path.unlink(missing_ok=True)
        for number in numbers:
            notes: dict[str, tuple[str, str]] = {}
            with _number(number, only, notes):
                made = compiled_variant(module, row, options)
            with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
                for name, content in made.entries.items():
                    if name not in written:
                        file.writestr(name, content)
                        written.add(name)
                used = {step.entry for step in steps_in(made.plan.body) if isinstance(step, LaunchStep)}
                file.writestr(f"{number}.plan", PLAN.to_msgpack(made.plan))
                file.writestr(f"{number}.json", json.dumps({name: notes[name] for name in sorted(used & notes.keys())}))
                print(subject.name, number, len(written), flush=True)


def run(folder: Path, arch: str, subjects: Sequence[Subject], numbers: Sequence[int]) -> None:
    """Measure the files of a folder, and print the candidates of each problem, the fastest first."""
    for subject in subjects:
        times: dict[str, list[tuple[float, str]]] = {}
        made = _Given.of(subject, arch)
        with zipfile.ZipFile(folder / f"{subject.name}.zip") as file:
            for number in numbers:
                if f"{number}.plan" not in file.namelist():
                    continue
                told = _apart(partial(_measured, made, file, number), f"{subject.name} {number}")
                if told is None:
                    continue
                notes = json.loads(file.read(f"{number}.json"))
                print(
                    f"{subject.name} {number:2}: model {told['model']:8.1f} us, kernels {told['alone']:8.1f}, "
                    f"error {told['error']:.1e}, memory {told['memory'] >> 20} MiB {told['wrong']}", flush=True,
                )  # fmt: skip
                for name, (words, config) in notes.items():
                    if name in told["kernels"]:
                        times.setdefault(words, []).append((told["kernels"][name], f"{number:2} {config}"))
        for words, found in times.items():
            print(f"  {words}")
            for time_, config in sorted(set(found))[:8]:
                print(f"    {time_:8.2f}  {config}")
        sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class _Given:
    """What all numbers of a subject share: its weights, inputs, expected outputs."""

    weights: Mapping[str, Any]
    arguments: Sequence[Any]
    expected: Sequence[Any]
    folder: Path

    @staticmethod
    def of(subject: Subject, arch: str) -> _Given:
        import onnxruntime  # noqa: PLC0415

        start = time.perf_counter()
        program, options = subject.program(), CompileOptions(precision=PRECISION)
        module = PassManager(tuple(pipeline(options))).run(program.main)
        lowered = lower.lower_module(module, known_gpu(arch), options, {}, {})
        feeds = subject.feeds()
        shapes = [parameter.result().shape for parameter in program.main.parameters]
        names = list(program.inputs)
        given = {name: np.resize(feeds[name], shape) for name, shape in zip(names, shapes, strict=True)}
        session = onnxruntime.InferenceSession(subject.onnx().SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, given)
        print(f"{subject.name}: ready after {time.perf_counter() - start:.0f} s", flush=True)
        folder = Path(tempfile.mkdtemp())
        return _Given(lowered.weights, [given[name] for name in names], expected, folder)


def _measured(given: _Given, file: zipfile.ZipFile, number: int) -> dict[str, Any]:
    """Times of one number, in µs."""
    from argosy.drivers.discovery import devices  # noqa: PLC0415
    from argosy.runtime.gpu.device import open_device  # noqa: PLC0415
    from argosy.runtime.gpu.executor import DeviceExecutor  # noqa: PLC0415

    plan = PLAN.from_msgpack(file.read(f"{number}.plan"), where=f"plan {number}")
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), lambda ref: given.weights[ref.sha256], "tune")
    device = open_device(next(each for each in devices() if not each.problem))
    executor = DeviceExecutor(plan, decoder, "tune", device, [file.read(code.path) for code in plan.code])
    samples: list[Any] = []

    def observe(_: Any, values: Sequence[Any]) -> None:
        flat = np.asarray(values[-1]).reshape(-1)
        samples.append(flat[:: max(flat.size // _SAMPLE, 1)].astype(np.float32))

    found = executor.run(given.arguments, Env(), observe)
    error = max(
        float(np.abs(right - np.asarray(ours, np.float32)).max() / np.abs(right).max())
        for right, ours in zip(given.expected, found, strict=True)
    )
    steps = [step for step in steps_in(plan.body) if isinstance(step, LaunchStep)]
    kept = given.folder / "samples.npy"
    wrong = ""
    if number == 0:
        np.save(kept, np.array(samples, dtype=object), allow_pickle=True)
    elif kept.exists():
        before = np.load(kept, allow_pickle=True)
        for step, mine, right in zip(steps, samples, before, strict=True):
            apart = np.abs(mine - right).max() / max(np.abs(right).max(), 1e-6)
            if not apart < 2e-2:
                wrong = f"WRONG from {step.entry} on: {apart:.1e}"
                break
    with executor.fixed_launches(given.arguments) as launches:
        times = launches.times(_REPLAYS)
    kernels: dict[str, float] = {}
    for launch in times.launches:
        kernels[launch.entry] = min(kernels.get(launch.entry, math.inf), launch.seconds * 1e6)
    alone = sum(launch.seconds for launch in times.launches) * 1e6
    return {"model": times.seconds * 1e6, "alone": alone, "error": error, "wrong": wrong, "kernels": kernels,
            "memory": executor.memory}  # fmt: skip


def _apart(work: Any, what: str) -> Any:
    """What work gives, done in a process of its own; None where it fails or takes too long, with its words."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            told = json.dumps(work())
        except BaseException as error:  # noqa: BLE001 - told where it is asked for
            told = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        with os.fdopen(write, "w") as out:
            out.write(told)
        sys.stdout.flush()
        os._exit(0)
    os.close(write)
    parts: list[bytes] = []
    until = time.monotonic() + _SECONDS
    while True:
        ready, _, _ = select.select([read], [], [], max(until - time.monotonic(), 0))
        if not ready:
            break
        part = os.read(read, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    answer = json.loads(b"".join(parts)) if parts else {"failed": f"it ended, or took more than {_SECONDS} s"}
    if "failed" in answer:
        print(f"{what}: {answer['failed']}", flush=True)
        return None
    return answer


def _numbers(text: str) -> list[int]:
    parts = [part.partition("-") for part in text.split(",")]
    return [number for first, _, last in parts for number in range(int(first), int(last or first) + 1)]


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.tune", description=__doc__)
    parser.add_argument("verb", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="h200", help="the GPU to compile for (default: h200)")
    parser.add_argument("--subject", action="append", choices=[each.name for each in SUBJECTS], help="only these")
    parser.add_argument("--numbers", type=_numbers, default="0-20", help="the candidates, as 0,2,5-7 (default: 0-20)")
    parser.add_argument("--only", default="", metavar="REGEX", help="tune only problems with such words (pack)")
    asked = parser.parse_args()
    subjects = [each for each in SUBJECTS if not asked.subject or each.name in asked.subject]
    if asked.verb == "pack":
        pack(asked.folder, asked.arch, subjects, asked.numbers, asked.only)
    else:
        run(asked.folder, asked.arch, subjects, asked.numbers)


if __name__ == "__main__":
    main()

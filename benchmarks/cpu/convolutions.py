"""Convolutions of every kind beside ONNX Runtime, one op to a model: `python -m benchmarks.cpu.convolutions`.

Images and results are row-major for both, as a program hands them over. Both engines run in turn on one thread; the
figures are medians of CPU time. `--save` writes the table to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.profiling import perf
from argosy.targets.cpu.arch import native
from benchmarks.cpu.__main__ import RESULTS, cpu_name, versions
from benchmarks.cpu.cases import Files
from benchmarks.cpu.contenders import argosy_contender, onnxruntime_contender

__all__ = ["PROBLEMS", "Problem", "main", "model_of"]

_SAMPLE: Final = 0.02
_TYPES: Final = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


@dataclass(frozen=True, slots=True)
class Problem:
    """A convolution: dims of image and weight, the attributes of the op. `open` axes of the image have no known size.

    `fed` weights are an input of the model. `behind` is an op that takes the result: LRN or InstanceNormalization.
    """

    name: str
    x: tuple[int, ...]
    weight: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    op: str = "Conv"
    open: tuple[int, ...] = ()
    fed: bool = False
    dtype: str = "float32"
    behind: str = ""


def _conv(name: str, x: Sequence[int], weight: Sequence[int], **fields: Any) -> Problem:
    """Numbers among the attributes stand for all axes."""
    axes = len(x) - 2
    given = {key: fields.pop(key) for key in ("op", "open", "fed", "dtype", "behind") if key in fields}
    for key, value in fields.items():
        if key != "group" and isinstance(value, int):
            fields[key] = [value] * (2 * axes if key == "pads" else axes)
    return Problem(name, tuple(x), tuple(weight), fields, **given)


def _transposed(name: str, x: Sequence[int], weight: Sequence[int], **fields: Any) -> Problem:
    return _conv(name, x, weight, op="ConvTranspose", **fields)


PROBLEMS: Final[Sequence[Problem]] = (
    _conv("1-d, 3", (1, 256, 1000), (256, 256, 3), pads=1),
    _conv("1-d, 7, dilated by 3", (1, 128, 3000), (128, 128, 7), pads=9, dilations=3),
    _conv("1-d, 2, dilated by 512", (1, 64, 8000), (64, 64, 2), pads=[512, 0], dilations=512),
    _conv("1-d, of one channel, strided", (1, 1, 32000), (128, 1, 10), strides=5),
    _conv("1-d, of one channel, a spectrum", (1, 1, 32000), (514, 1, 512), strides=256),
    _conv("1-d, of 22 channels, strided", (1, 22, 12001), (256, 22, 12), pads=3, strides=6),
    _conv("1-d, 3, strided", (1, 256, 3199), (256, 256, 3), strides=2),
    _conv("1-d, to one channel", (1, 64, 16000), (1, 64, 7), pads=3),
    _conv("1-d, to 22 channels", (1, 128, 6000), (22, 128, 7), pads=3),
    _conv("1-d, grouped, 128 wide", (1, 768, 100), (768, 48, 128), pads=64, group=16),
    _conv("1-d, depthwise, 31", (1, 256, 800), (256, 1, 31), pads=15, group=256),
    _conv("1-d, depthwise, 3", (1, 512, 2000), (512, 1, 3), pads=1, group=512),
    _conv("1-d, length open", (1, 128, 2000), (128, 128, 3), pads=1, open=(2,)),
    _conv("2-d, of one channel", (1, 1, 128, 128), (32, 1, 5, 5), pads=2),
    _conv("2-d, of two channels", (1, 2, 128, 128), (32, 2, 3, 3), pads=1),
    _conv("2-d, of three channels, strided by 4", (1, 3, 224, 224), (96, 3, 7, 7), strides=4, pads=3),
    _conv("2-d, of three channels, patches", (1, 3, 224, 224), (384, 3, 16, 16), strides=16),
    _conv("2-d, to one channel", (1, 64, 112, 112), (1, 64, 3, 3), pads=1),
    _conv("2-d, to three channels, 9 x 9", (1, 32, 128, 128), (3, 32, 9, 9), pads=4),
    _conv("2-d, dilated by 12", (1, 128, 48, 48), (128, 128, 3, 3), pads=12, dilations=12),
    _conv("2-d, 1 x 7", (1, 128, 28, 28), (128, 128, 1, 7), pads=[0, 3, 0, 3]),
    _conv("2-d, 1 x 1, strided", (1, 256, 56, 56), (512, 256, 1, 1), strides=2),
    _conv("2-d, sizes open", (1, 64, 56, 56), (64, 64, 3, 3), pads=1, open=(0, 2, 3)),
    _conv("2-d, odd channels", (1, 35, 56, 56), (51, 35, 3, 3), pads=1),
    _conv("2-d, 32 groups of 4", (1, 128, 56, 56), (128, 4, 3, 3), pads=1, group=32),
    _conv("2-d, 12 groups of 2", (1, 24, 112, 112), (24, 2, 3, 3), pads=1, group=12),
    _conv("2-d, 3 groups of 40", (1, 120, 28, 28), (240, 40, 1, 1), group=3),
    _conv("2-d, depthwise, two for each", (1, 64, 56, 56), (128, 1, 3, 3), pads=1, group=64),
    _conv("2-d, depthwise, 3 channels to 12", (1, 3, 224, 224), (12, 1, 3, 3), pads=1, group=3),
    _conv("2-d, depthwise, 5 x 5, strided", (1, 144, 56, 56), (144, 1, 5, 5), pads=2, strides=2, group=144),
    _conv("2-d, depthwise, 7 x 7", (1, 96, 56, 56), (96, 1, 7, 7), pads=3, group=96),
    _conv("2-d, depthwise, 21 x 21", (1, 64, 32, 32), (64, 1, 21, 21), pads=10, group=64),
    _conv("2-d, depthwise, dilated", (1, 128, 56, 56), (128, 1, 3, 3), pads=2, dilations=2, group=128),
    _conv("2-d, weights fed", (1, 64, 56, 56), (64, 64, 3, 3), pads=1, fed=True),
    _conv("2-d, depthwise, weights fed", (1, 256, 31, 31), (256, 1, 7, 7), group=256, fed=True),
    _conv("1-d, weights fed", (1, 64, 2000), (64, 64, 5), pads=2, fed=True),
    _conv("2-d, float16", (1, 64, 56, 56), (64, 64, 3, 3), pads=1, dtype="float16"),
    _conv("1-d, float16", (1, 128, 2000), (128, 128, 3), pads=1, dtype="float16"),
    _conv("2-d, depthwise, float16", (1, 96, 56, 56), (96, 1, 3, 3), pads=1, group=96, dtype="float16"),
    _conv("3-d", (1, 32, 8, 28, 28), (64, 32, 3, 3, 3), pads=1),
    _conv("3-d, of three channels, strided", (1, 3, 8, 56, 56), (24, 3, 3, 3, 3), pads=1, strides=[1, 2, 2]),
    _conv("3-d, 3 x 1 x 1", (1, 64, 8, 28, 28), (64, 64, 3, 1, 1), pads=[1, 0, 0, 1, 0, 0]),
    _conv("3-d, depthwise", (1, 64, 8, 28, 28), (64, 1, 3, 3, 3), pads=1, group=64),
    _transposed("transposed, 2 x 2 by 2", (1, 64, 56, 56), (64, 32, 2, 2), strides=2),
    _transposed("transposed, 4 x 4 by 2", (1, 128, 16, 16), (128, 64, 4, 4), strides=2, pads=1),
    _transposed("transposed, 3 x 3", (1, 64, 28, 28), (64, 64, 3, 3), pads=1),
    _transposed("transposed, of one pixel", (1, 100, 1, 1), (100, 512, 4, 4)),
    _transposed("transposed, 9 x 9 by 3, to one channel", (1, 56, 48, 48), (56, 1, 9, 9), strides=3, pads=4),
    _transposed("transposed, 16 x 16 by 8, depthwise", (1, 21, 20, 20), (21, 1, 16, 16), strides=8, pads=4, group=21),
    _transposed("transposed, 4 x 4 by 2, 4 groups", (1, 64, 28, 28), (64, 16, 4, 4), strides=2, pads=1, group=4),
    _transposed("transposed, 1-d, 16 by 8", (1, 256, 200), (256, 128, 16), strides=8, pads=4),
    _transposed("transposed, 1-d, 20 by 10", (1, 256, 120), (256, 128, 20), strides=10, pads=5),
    _transposed("transposed, 1-d, to one channel", (1, 22, 6000), (22, 1, 20), strides=5),
    _transposed("transposed, 1-d, length open", (1, 128, 500), (128, 64, 4), strides=2, pads=1, open=(2,)),
    _transposed("transposed, 1-d, a spectrum back", (1, 514, 126), (514, 1, 512), strides=256),
    _transposed("transposed, float16", (1, 64, 28, 28), (64, 32, 4, 4), strides=2, pads=1, dtype="float16"),
    _transposed("transposed, 3-d, 2 by 2", (1, 32, 8, 14, 14), (32, 16, 2, 2, 2), strides=2),
    _conv("2-d, then InstanceNorm", (1, 64, 56, 56), (64, 64, 1, 1), behind="InstanceNormalization"),
    _conv("1-d, then InstanceNorm", (1, 128, 4000), (128, 128, 1), behind="InstanceNormalization"),
    _conv("2-d, then LRN", (1, 64, 56, 56), (64, 64, 1, 1), behind="LRN"),
)


def model_of(problem: Problem, random: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one op, and what to feed it with."""
    dtype = numpy_type(problem.dtype)
    depth = int(np.prod(problem.weight[1:])) if problem.op == "Conv" else problem.weight[0]
    x = random.standard_normal(problem.x).astype(dtype)
    weight = (random.standard_normal(problem.weight) / np.sqrt(depth)).astype(dtype)
    group = problem.attributes.get("group", 1)
    outputs = problem.weight[0] if problem.op == "Conv" else problem.weight[1] * group
    kind = _TYPES[problem.dtype]
    dims = [f"d{axis}" if axis in problem.open else size for axis, size in enumerate(problem.x)]
    inputs = [helper.make_tensor_value_info("x", kind, dims)]
    kept = [numpy_helper.from_array(random.standard_normal(outputs).astype(dtype), "b")]
    feeds = {"x": x}
    if problem.fed:
        inputs.append(helper.make_tensor_value_info("w", kind, problem.weight))
        feeds["w"] = weight
    else:
        kept.append(numpy_helper.from_array(weight, "w"))
    last = "c" if problem.behind else "y"
    nodes = [helper.make_node(problem.op, ["x", "w", "b"], [last], **problem.attributes)]
    if problem.behind == "LRN":
        nodes.append(helper.make_node("LRN", ["c"], ["y"], size=5))
    elif problem.behind:
        kept += [numpy_helper.from_array(np.abs(random.standard_normal(outputs)).astype(dtype), name) for name in "st"]
        nodes.append(helper.make_node(problem.behind, ["c", "s", "t"], ["y"]))
    made = helper.make_tensor_value_info("y", kind, [None] * len(problem.x))
    graph = helper.make_graph(nodes, "convolution", inputs, [made], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def numpy_type(name: str) -> Any:
    """The numpy type of an element type."""
    return helper.tensor_dtype_to_np_dtype(_TYPES[name])


def measure(problem: Problem, rounds: int) -> dict[str, Any]:
    """Milliseconds of both, what our kernels are, and the largest difference against the largest result."""
    model, feeds = model_of(problem, np.random.default_rng(0))
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as folder:
        files = Files(Path(folder))
        onnx.save(model, str(files.model))
        onnx.save(model, str(files.bound))
        argosy.compile(argosy.load_onnx(files.model), targets=["cpu"]).save(files.artifact)
        ours, theirs = (make(files, feeds, 1, "fp32") for make in (argosy_contender, onnxruntime_contender))
        found, expected = (one.results()["y"].astype(np.float64) for one in (ours, theirs))
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for turn in range(rounds + 1):
            for name, one in (("ours", ours), ("theirs", theirs)):
                count, begin = 0, time.process_time()
                while time.process_time() - begin < (_SAMPLE if turn else 0):
                    one.run()
                    count += 1
                if turn:
                    times[name].append((time.process_time() - begin) / count)
        calls = perf(ours.session, inputs=feeds, iterations=3, warmup=0, clock=time.process_time).instructions
    mine, its = (statistics.median(times[name]) * 1e3 for name in ("ours", "theirs"))
    return {
        "name": problem.name,
        "ours": mine,
        "ort": its,
        "ratio": its / mine,
        "difference": float(np.abs(found - expected).max() / np.abs(expected).max()),
        "kernels": [f"{call.op} {call.seconds * 1e3:.3f}" for call in calls],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and show a line for each problem."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu.convolutions", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="problems whose name it finds")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each engine (default %(default)s)")
    parser.add_argument("--kernels", action="store_true", help="show our calls, with milliseconds")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results")
    options = parser.parse_args(argv)
    rows = []
    for problem in PROBLEMS:
        if not re.search(options.only, problem.name):
            continue
        row = measure(problem, options.rounds)
        rows.append(row)
        print(line(row), flush=True)
        if options.kernels:
            print("      " + ", ".join(row["kernels"]), flush=True)
    told = ", ".join(f"{name} {version}" for name, version in versions().items() if name != "openvino")
    head = [f"CPU: {cpu_name()}, level {native().name}", f"versions: {told}", HEAD]
    text = "\n".join([*head, *(line(row) for row in sorted(rows, key=lambda row: row["ratio"])), ""])
    mean = statistics.geometric_mean(row["ratio"] for row in rows)
    text += f"geometric mean {mean:.2f}, at least 0.9: {sum(row['ratio'] >= 0.9 for row in rows)} of {len(rows)}\n"
    print(text, end="")
    if options.save:
        (RESULTS / f"convolutions-{native().name}.txt").write_text(text, encoding="utf-8")
    return 0


HEAD: Final = f"{'milliseconds of CPU time, 1 thread':45}{'ours':>9}{'ORT':>9}{'ratio':>7}{'difference':>12}"


def line(row: dict[str, Any]) -> str:
    """A problem's line of the table."""
    return f"{row['name']:45}{row['ours']:9.3f}{row['ort']:9.3f}{row['ratio']:7.2f}{row['difference']:12.1e}"


if __name__ == "__main__":
    sys.exit(main())

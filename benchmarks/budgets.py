"""Budgets: CPU seconds and peak memory of the compiler on large models and of the CPU target, beside a fixed yardstick.

`python -m benchmarks.budgets` prints a table. CPU seconds are those of a fresh process, children included,
median of five. Memory is the peak beyond that of the imports, as a multiple of the bytes of the weights.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.cpu.budgets import cpu_rows
from benchmarks.emulation_budgets import emulation_rows
from benchmarks.fresh_process import RUNS, measured, median_seconds
from benchmarks.gpu_budgets import gpu_rows

WEIGHTS = 512 << 20
"""Bytes of the weights of the memory cases: large against what the imports take."""


def deep_model(nodes: int) -> onnx.ModelProto:
    """`nodes` nodes: blocks of arithmetic with the shape arithmetic that exporters write around a Reshape."""
    made: list[onnx.NodeProto] = []
    weights = [
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array([-1], np.int64), "rest"),
        numpy_helper.from_array(np.full((1, 64), 0.5, np.float32), "half"),
    ]
    value = "x"
    block = 0
    while len(made) < nodes:
        name = f"b{block}"
        made += [
            helper.make_node("Mul", [value, "half"], [f"{name}m"], name=f"{name}/mul"),
            helper.make_node("Relu", [f"{name}m"], [f"{name}r"], name=f"{name}/relu"),
            helper.make_node("Add", [f"{name}r", value], [f"{name}a"], name=f"{name}/add"),
            helper.make_node("Shape", [f"{name}a"], [f"{name}s"], name=f"{name}/shape"),
            helper.make_node("Gather", [f"{name}s", "zero"], [f"{name}g"], name=f"{name}/gather"),
            helper.make_node("Concat", [f"{name}g", "rest"], [f"{name}c"], name=f"{name}/concat", axis=0),
            helper.make_node("Reshape", [f"{name}a", f"{name}c"], [f"{name}y"], name=f"{name}/reshape"),
        ]
        value = f"{name}y"
        block += 1
    made = made[: nodes - nodes % 7] if nodes >= 7 else made
    value = made[-1].output[0]
    graph = helper.make_graph(
        made,
        "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def wide_model(folder: Path, *, external: bool) -> Path:
    """A chain of matrix products with `WEIGHTS` bytes of weights, in the file or beside it."""
    size = 2048
    count = WEIGHTS // (size * size * 4)
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((size, size), np.float32), f"w{index}") for index in range(count)
    ]
    nodes = [
        helper.make_node("MatMul", ["x" if index == 0 else f"y{index - 1}", f"w{index}"], [f"y{index}"])
        for index in range(count)
    ]
    graph = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", size])],
        [helper.make_tensor_value_info(f"y{count - 1}", TensorProto.FLOAT, ["N", size])],
        weights,
    )
    path = folder / f"wide-{'external' if external else 'embedded'}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path), save_as_external_data=external, location="wide.weights")
    return path


# What the compiler does without code generation: load, the normalise phase, save.
COMPILE = """
import argosy
from argosy.passes.manager import PassManager
from argosy.passes import NORMALISE
program = argosy.load_onnx(sys.argv[1])
PassManager((NORMALISE,)).run(program.main)
argosy.compile(program, targets=["ref"]).save(sys.argv[2])
"""
SAVE = """
import argosy
argosy.compile(sys.argv[1], targets=["ref"]).save(sys.argv[2])
"""
IMPORTS = "import argosy, argosy.compiler, onnx, argosy.frontends.onnx"
YARDSTICK = """
total = 0
for number in range(20_000_000):
    total += number & 7
"""


def time_rows(folder: Path, sizes: Sequence[int], runs: int) -> list[tuple[str, str, str]]:
    """A row for each number of nodes."""
    rows = []
    for nodes in sizes:
        path = folder / f"deep-{nodes}.onnx"
        onnx.save(deep_model(nodes), str(path))
        seconds = median_seconds(COMPILE, str(path), str(folder / "out.argosy"), runs=runs)
        bar = "under 5 CPU s" if nodes == 5000 else "linear"
        rows.append((f"load, normalise, save {nodes:,} nodes", f"{seconds:.2f} CPU s", bar))
    return rows


def memory_rows(folder: Path) -> list[tuple[str, str, str]]:
    """A row for weights in the file and one for weights beside it."""
    base = measured(IMPORTS)[1]
    rows = []
    for external, bar in ((True, 1.3), (False, 2.3)):
        path = wide_model(folder, external=external)
        peak = measured(SAVE, str(path), str(folder / "out.argosy"))[1]
        where = "beside the model" if external else "in the model"
        ratio = (peak - base) / WEIGHTS
        rows.append(
            (f"peak memory, {WEIGHTS >> 20} MiB of weights {where}", f"{ratio:.2f} x weights", f"at most {bar}")
        )
        path.unlink()
    return rows


def import_row(runs: int) -> tuple[str, str, str]:
    """What importing the runtime adds to importing its three dependencies."""
    base = median_seconds("import numpy, ml_dtypes, msgspec", runs=runs)
    measured("import argosy.runtime")
    ours = median_seconds("import numpy, ml_dtypes, msgspec, argosy.runtime", runs=runs)
    return ("import argosy.runtime, beyond its dependencies", f"{(ours - base) * 1000:.0f} CPU ms", "under 50 ms")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="processes per figure (default %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 10000, 20000, 50000], help="nodes")
    parser.add_argument("--skip-memory", action="store_true", help="leave out the memory cases, which write 1 GB")
    parser.add_argument("--only-cpu", action="store_true", help="only what the CPU target costs")
    parser.add_argument("--only-gpu", action="store_true", help="only what compiling for GPUs and emulating them costs")
    options = parser.parse_args(argv)
    steps: list[Callable[[Path], list[tuple[str, str, str]]]] = [
        lambda folder: time_rows(folder, options.sizes, options.runs),
        lambda _: [import_row(options.runs)],
    ]
    if not options.skip_memory:
        steps.append(memory_rows)
    if options.only_cpu or options.only_gpu:
        steps.clear()
    if not options.only_gpu:
        steps.append(lambda folder: cpu_rows(folder, options.runs))
    if not options.only_cpu:
        steps += [lambda folder: gpu_rows(folder, options.runs), lambda folder: emulation_rows(folder, options.runs)]
    with tempfile.TemporaryDirectory() as name:
        rows = [("yardstick: 20 million additions in Python", f"{median_seconds(YARDSTICK):.2f} CPU s", "")]
        for step in steps:
            rows += step(Path(name))
    width = max(len(row[0]) for row in rows)
    for what, figure, bar in rows:
        print(f"{what:{width}}  {figure:>16}  {bar}")
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}, onnx {onnx.__version__}, {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())

"""Single products of short types beside PyTorch's: int8, 8-bit floats, and few rows times weights of 4 bits.

`python -m benchmarks.gpu.products pack FOLDER` compiles without a device; `… run FOLDER` measures there, in µs by one
captured graph, and needs PyTorch but no onnx. Each result is compared with PyTorch's product of the same numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

import argosy

_SIZE: Final = 4096
_BLOCK: Final = 32
_FP8: Final = "float8_e4m3fn"


@dataclass(frozen=True, slots=True)
class Product:
    """A product of 4096 x 4096 weights with some rows; `kind` is the element type of the weights."""

    name: str
    kind: str
    rows: int
    accuracy: str = "standard"

    @property
    def flops(self) -> float:
        """Operations, multiply-adds counted twice."""
        return 2.0 * self.rows * _SIZE * _SIZE


PRODUCTS: Final = (
    Product("int8", "int8", _SIZE),
    Product("fp8", _FP8, _SIZE),
    Product("fp8-relaxed", _FP8, _SIZE, "relaxed"),
    *(Product(f"int4-rows{rows}", "uint4", rows) for rows in (1, 4, 16, 64, 512)),
)


def _values(case: Product) -> dict[str, np.ndarray]:
    """Operands: x `[rows, 4096]`, w `[4096 columns, 4096]`, and the scales of blocks of w where it has 4 bits."""
    rng = np.random.default_rng(0)
    shape = (case.rows, _SIZE)
    if case.kind == "int8":
        return {name: rng.integers(-128, 128, (_SIZE, _SIZE)).astype(np.int8) for name in "xw"}
    if case.kind == _FP8:
        return {name: rng.standard_normal((_SIZE, _SIZE)).astype(ml_dtypes.float8_e4m3fn) for name in "xw"}
    return {
        "x": rng.standard_normal(shape).astype(np.float16),
        "w": rng.integers(0, 256, (_SIZE, _SIZE // _BLOCK, _BLOCK // 2), np.uint8),
        "s": rng.uniform(0.01, 0.02, (_SIZE, _SIZE // _BLOCK)).astype(np.float16),
    }


def _model(case: Product) -> bytes:
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - not where it runs

    node, tensor = helper.make_node, helper.make_tensor_value_info
    square = [_SIZE, _SIZE]
    constants = []
    if case.kind == "uint4":
        given = _values(case)
        constants = [numpy_helper.from_array(given["w"], "w"), numpy_helper.from_array(given["s"], "s")]
        sizes: dict[str, Any] = {"K": _SIZE, "N": _SIZE, "bits": 4, "block_size": _BLOCK}
        nodes = [node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **sizes)]
        inputs = [tensor("x", TensorProto.FLOAT16, [case.rows, _SIZE])]
        kind = TensorProto.FLOAT16
    elif case.kind == "int8":
        nodes = [node("Transpose", ["w"], ["t"], perm=[1, 0]), node("MatMulInteger", ["x", "t"], ["y"])]
        inputs = [tensor(name, TensorProto.INT8, square) for name in "xw"]
        kind = TensorProto.INT32
    else:
        constants = [numpy_helper.from_array(np.array(1, np.float32), "one")]
        nodes = [
            node("DequantizeLinear", ["x", "one"], ["a"]), node("DequantizeLinear", ["w", "one"], ["b"]),
            node("Transpose", ["b"], ["t"], perm=[1, 0]), node("MatMul", ["a", "t"], ["r"]),
            node("Cast", ["r"], ["y"], to=TensorProto.FLOAT16),
        ]  # fmt: skip
        inputs = [tensor(name, TensorProto.FLOAT8E4M3FN, square) for name in "xw"]
        kind = TensorProto.FLOAT16
    graph = helper.make_graph(nodes, case.name, inputs, [tensor("y", kind, [case.rows, _SIZE])], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def pack(folder: Path, arch: str) -> None:
    """Write an artifact for each product."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in PRODUCTS:
        path = folder / f"{case.name}.argosy"
        made = argosy.compile(
            _model(case),
            targets=(arch,),
            precision="fp16" if case.kind == "uint4" else "fp32",
            accuracy=case.accuracy,
            strict=True,
        )
        made.save(path)
        print(f"{case.name:12} {path.stat().st_size / 1024:8.0f} KiB", flush=True)


def _peers(case: Product, given: Mapping[str, Any]) -> tuple[Any, dict[str, Callable[[], Any]]]:
    """The product in float64 or int32, and PyTorch's ways."""
    import torch  # noqa: PLC0415

    def on_device(name: str) -> Any:
        value = given[name]
        if value.dtype == ml_dtypes.float8_e4m3fn:
            return torch.from_numpy(value.view(np.uint8)).cuda().view(torch.float8_e4m3fn)
        return torch.from_numpy(value).cuda()

    x, w = on_device("x"), on_device("w")
    half = torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.half)
    rows = torch.randn(case.rows, _SIZE, device="cuda", dtype=torch.half)
    ways: dict[str, Callable[[], Any]] = {"fp16 mm": lambda: rows @ half.t()}
    if case.kind == "int8":
        ways["_int_mm"] = lambda: torch._int_mm(x, w.t())  # noqa: SLF001
        return torch._int_mm(x, w.t()).cpu().numpy(), ways  # noqa: SLF001
    if case.kind == _FP8:
        one = torch.ones((), device="cuda")
        for fast in (False, True):
            ways[f"_scaled_mm{' fast' if fast else ''}"] = lambda fast=fast: torch._scaled_mm(  # type: ignore[misc] # noqa: SLF001
                x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
            )
        return (x.double() @ w.double().t()).cpu().numpy(), ways
    flat = w.view(_SIZE, _SIZE // 2)
    packed = torch._convert_weight_to_int4pack(flat, 8)  # noqa: SLF001
    scales = torch.ones(_SIZE // _BLOCK, _SIZE, 2, device="cuda", dtype=torch.bfloat16)
    short = rows.bfloat16()
    ways["_weight_int4pack_mm"] = lambda: torch._weight_int4pack_mm(short, packed, _BLOCK, scales)  # noqa: SLF001
    codes = torch.stack((flat & 15, flat >> 4), -1).view(_SIZE, _SIZE // _BLOCK, _BLOCK).double() - 8
    weights = (codes * on_device("s").double()[:, :, None]).view(_SIZE, _SIZE)
    return (x.double() @ weights.t()).cpu().numpy(), ways


def run(folder: Path) -> None:
    """Measure the artifacts of a folder."""
    from benchmarks.gpu.ours import measure  # noqa: PLC0415 - needs torch
    from benchmarks.gpu.peers import replayed  # noqa: PLC0415

    for case in PRODUCTS:
        given = _values(case)
        session = argosy.Session(folder / f"{case.name}.argosy", device="cuda")
        feeds = {name: given[name] for name in session.inputs}
        (found,) = session.run(feeds).values()
        ours = measure(session, feeds)
        expected, ways = _peers(case, given)
        error = np.abs(np.asarray(found, np.float64) - expected).max() / np.abs(expected).max()
        line = (
            f"{case.name:12} ours {ours.alone:8.1f} = {case.flops / ours.alone / 1e6:6.0f} TFLOP/s  error {error:.1e}"
        )
        for way, call in ways.items():
            time = replayed(call)
            line += f"  {way} {time:8.1f} ({time / ours.model:.2f}x)"
        print(line, flush=True)
        for name, (time, count) in ours.kernels.items():
            print(f"    {name:44} {time:8.1f} = {count:3} x {time / count:.2f}", flush=True)


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.products", description=__doc__)
    parser.add_argument("verb", choices=("pack", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="h200", help="what to compile for")
    asked = parser.parse_args()
    if asked.verb == "pack":
        pack(asked.folder, asked.arch)
    else:
        run(asked.folder)


if __name__ == "__main__":
    main()

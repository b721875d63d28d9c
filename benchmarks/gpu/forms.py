"""`python -m benchmarks.gpu.forms pack FOLDER` compiles single ops of large sizes, `… run FOLDER` measures them there.

These are ops whose time hangs on the form of their algorithm: sorts, scatters, transforms, scans and recurrent layers.
Results are compared with numpy's, and must have the same bits in every run; PyTorch's times stand beside where it has
the op. Times are medians of 30 replays of one captured graph, PyTorch's of 30 calls; all in µs.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import argosy

__all__ = ["FORMS", "Form", "error_of", "pack", "run"]

_MANY: Final = 1_000_000
_SLOTS: Final = 100_000
_FRAME: Final = 1024
_HOP: Final = 256
_STEPS: Final = 100
_HIDDEN: Final = 512
_NEAR: Final = 1e-4
"""How far floats may be from numpy's in float64, beside the greatest of a result."""

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One op: `node` makes its ONNX node from the names of its inputs, `constants` of which are in the model.

    `expected` are the results by numpy; `torch`, of torch and its tensors, the same op there.
    """

    name: str
    node: Callable[[list[str]], Any]
    inputs: Callable[[], Arrays]
    outputs: int
    expected: Callable[[Arrays], list[Any]]
    constants: frozenset[str] = frozenset()
    torch: Callable[[Any, dict[str, Any]], Any] | None = None

    def model(self) -> Any:
        """The ONNX model."""
        from onnx import helper, numpy_helper  # noqa: PLC0415 - what measures has no onnx

        arrays = self.inputs()
        outputs = [f"y{place}" for place in range(self.outputs)]
        node = self.node(list(arrays))
        node.output.extend(outputs)
        kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in arrays.items()}
        expected = self.expected(arrays)
        graph = helper.make_graph(
            [node],
            self.name,
            [
                helper.make_tensor_value_info(name, kinds[name], array.shape)
                for name, array in arrays.items()
                if name not in self.constants
            ],
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
                for name, value in zip(outputs, expected, strict=True)
            ],
            [numpy_helper.from_array(arrays[name], name) for name in self.constants],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _node(op: str, names: list[str], **attributes: Any) -> Any:
    from onnx import helper  # noqa: PLC0415

    return helper.make_node(op, names, [], **attributes)


def _normal(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def _top(k: int) -> Form:
    def expected(given: Arrays) -> list[Any]:
        order = np.argsort(-given["x"], kind="stable")[:k]
        return [given["x"][order], order]

    return Form(
        f"top-{k}",
        lambda names: _node("TopK", names, axis=0),
        lambda: {"x": _normal(_MANY), "k": np.array([k])},
        2,
        expected,
        frozenset({"k"}),
        lambda torch, given: torch.topk(given["x"], k),
    )


def _spectra(given: Arrays) -> list[Any]:
    signal = given["signal"][0, :, 0].astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(signal, _FRAME)[::_HOP] * given["window"]
    found = np.fft.rfft(frames)
    return [np.stack([found.real, found.imag], -1)[None].astype(np.float32)]


def _added(given: Arrays) -> list[Any]:
    found = given["x"].astype(np.float64)
    np.add.at(found, given["i"], given["u"].astype(np.float64))
    return [found.astype(np.float32)]


def _lstm(given: Arrays) -> list[Any]:
    x, w, r = (given[name].astype(np.float64) for name in "xwr")
    h = c = np.zeros((x.shape[1], r.shape[2]))
    found = []
    for step in x:
        i, o, f, g = np.split(step @ w[0].T + h @ r[0].T, 4, -1)
        i, o, f = (1 / (1 + np.exp(-gate)) for gate in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        found.append(h)
    return [np.stack(found)[:, None].astype(np.float32)]


def _layer(name: str, hidden: int, batch: int = 1) -> Form:
    """An LSTM of as many inputs as hidden units."""

    def torch_lstm(torch: Any, given: dict[str, Any]) -> Any:
        if "layer" not in given:
            given["layer"] = torch.nn.LSTM(hidden, hidden).cuda()  # other weights take as long
        with torch.no_grad():
            return given["layer"](given["x"])

    return Form(
        name,
        lambda names: _node("LSTM", names, hidden_size=hidden),
        lambda: {
            "x": _normal(_STEPS, batch, hidden),
            "w": _normal(1, 4 * hidden, hidden) / 30,
            "r": _normal(1, 4 * hidden, hidden)[:, ::-1].copy() / 30,
        },
        1,
        _lstm,
        frozenset("wr"),
        torch_lstm,
    )


FORMS: Final = (
    _top(_MANY),
    _top(5000),
    Form(
        "stft",
        lambda names: _node("STFT", names, onesided=1),
        lambda: {
            "signal": _normal(1, _MANY, 1),
            "hop": np.array(_HOP),
            "window": np.hanning(_FRAME).astype(np.float32),
            "length": np.array(_FRAME),
        },
        1,
        _spectra,
        frozenset({"hop", "window", "length"}),
        lambda torch, given: torch.stft(
            given["signal"][0, :, 0], _FRAME, _HOP, window=given["window"], center=False, return_complex=True
        ),
    ),
    Form(
        "scatter-add",
        lambda names: _node("ScatterElements", names, axis=0, reduction="add"),
        lambda: {
            "x": _normal(_SLOTS),
            "i": np.random.default_rng(8).integers(0, _SLOTS, _MANY),
            "u": _normal(_MANY),
        },
        1,
        _added,
        torch=lambda torch, given: torch.index_add(given["x"], 0, given["i"], given["u"]),
    ),
    Form(
        "scatter-add-one",
        lambda names: _node("ScatterElements", names, axis=0, reduction="add"),
        lambda: {"x": _normal(_SLOTS), "i": np.zeros(_MANY, np.int64), "u": np.abs(_normal(_MANY))},
        1,
        _added,
        torch=lambda torch, given: torch.index_add(given["x"], 0, given["i"], given["u"]),
    ),
    Form(
        "running-sum",
        lambda names: _node("CumSum", names),
        lambda: {"x": np.abs(_normal(_MANY)), "axis": np.array(0)},
        1,
        lambda given: [np.cumsum(given["x"], dtype=np.float64).astype(np.float32)],
        frozenset({"axis"}),
        lambda torch, given: torch.cumsum(given["x"], 0),
    ),
    _layer("lstm", _HIDDEN),
    _layer("lstm-64", 64),
    _layer("lstm-batch", _HIDDEN, 32),
)


def pack(folder: Path, arch: str, forms: list[Form]) -> None:
    """Write an artifact for each form."""
    folder.mkdir(parents=True, exist_ok=True)
    for form in forms:
        path = folder / f"{form.name}.argosy"
        argosy.compile(form.model(), targets=(arch,), strict=True).save(path)
        print(f"{form.name:16} {path.stat().st_size / 1024:8.0f} KiB", flush=True)


def run(folder: Path, forms: list[Form], *, kernels: int) -> None:
    """Measure the artifacts of a folder. Exits where a result is wrong, or differs between runs."""
    import torch  # noqa: PLC0415

    from benchmarks.gpu.ours import graph_time, measure  # noqa: PLC0415

    wrong = []
    for form in forms:
        arrays = form.inputs()
        given = {name: array for name, array in arrays.items() if name not in form.constants}
        session = argosy.Session(folder / f"{form.name}.argosy", device="cuda")
        first, second = (list(session.run(given).values()) for _ in range(2))
        same = all(left.tobytes() == right.tobytes() for left, right in zip(first, second, strict=True))
        error = error_of(form.expected(arrays), first)
        ours = measure(session, given)
        line = f"{form.name:16} ours {ours.model:9.1f}  error {error:.1e}  {'same' if same else 'OTHER'} bits"
        if form.torch is not None:
            held = {name: torch.from_numpy(array).cuda() for name, array in arrays.items()}
            start = functools.partial(form.torch, torch, held)
            line += f"  torch {graph_time(start, torch.cuda.current_stream()):9.1f}"
        print(line, flush=True)
        for name, (time, count) in list(ours.kernels.items())[:kernels]:
            print(f"    {name:44} {time:8.1f} = {count:3} x {time / count:.2f}", flush=True)
        if not same or not error < _NEAR:
            wrong.append(form.name)
    if wrong:
        raise SystemExit(f"not right: {', '.join(wrong)}")


def error_of(expected: list[Any], found: list[Any]) -> float:
    """The greatest distance beside the greatest expected; infinite where integers differ, or there is a NaN."""
    worst = 0.0
    for right, ours in zip(expected, found, strict=True):
        if right.shape != ours.shape:
            return float("inf")
        if right.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(right, ours) else float("inf"))
        else:
            distance = float(np.abs(right.astype(np.float64) - ours).max() / max(np.abs(right).max(), 1e-30))
            worst = max(worst, distance if np.isfinite(distance) else float("inf"))
    return worst


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.forms", description=__doc__)
    parser.add_argument("verb", choices=["pack", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--form", action="append", choices=[form.name for form in FORMS])
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="also the N slowest kernels of each")
    given = parser.parse_args()
    forms = [form for form in FORMS if given.form is None or form.name in given.form]
    if given.verb == "pack":
        pack(given.folder, given.arch, forms)
    else:
        run(given.folder, forms, kernels=given.kernels)


if __name__ == "__main__":
    main()

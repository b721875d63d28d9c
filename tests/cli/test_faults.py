"""What a user meets at the command line: a broken model, or values that do not fit it. Every verb tells the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tests.cli.conftest import Call

BROKEN = {
    "unsupported op": ("y = Quux(x)", "Quux (node 0 → 'y'): ai.onnx::Quux, opset 21", "argosy ops"),
    "name clash": ("y = Abs(x) y = Neg(x)", "Neg (node 1 → 'y'): the name 'y' is given twice", "rename"),
    "cycle": ("a = Add(x, b) b = Abs(a) y = Neg(b)", "Add (node 0 → 'a'): is part of a cycle", "another value"),
    "attribute": ("y = Softmax<axes = 1>(x)", "Softmax (opset 21) has no attribute 'axes'", "it has axis"),
    "shapes": ("y = MatMul(x, x)", "the shapes [2, 3] and [2, 3] do not fit a matrix product", "'x': float32[2, 3]"),
    "types": ("a = Cast<to = 7>(x) y = Add(x, a)", "one element type, found float32, int64", "Cast"),
}


def written(folder: Path, body: str, inputs: str = "float[2, 3] x") -> Path:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => (float[N, 3] y) {{ {body} }}'
    path = folder / "broken.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


@pytest.mark.parametrize("case", BROKEN)
def test_broken_models(call: Call, tmp_path: Path, case: str) -> None:
    body, what, hint = BROKEN[case]
    path = written(tmp_path, body)
    answers = [
        call("read", path),
        call("params", path),
        call("compile", path, "--arch", "ref", "-o", tmp_path / "o.argosy"),
        call("run", path, "--device", "ref"),
        call("verify", path, "--device", "ref"),
    ]
    assert not (tmp_path / "o.argosy").exists()
    for answer in answers:
        assert answer.code == 3
        assert f"argosy: error: {path}: " in answer.err
        assert what in answer.err
        assert hint in answer.err


@pytest.mark.parametrize("device", ["ref", "cpu"])
def test_values_that_an_op_refuses_in_a_run(call: Call, tmp_path: Path, device: str) -> None:
    path = written(tmp_path, "y = Gather(x, i)", "float[2, 3] x, int64[M] i")
    np.save(tmp_path / "i.npy", np.array([0, 5]))
    answer = call("run", path, "--device", device, "--input", f"i={tmp_path / 'i.npy'}")
    assert answer.code in (2, 3)
    assert "Gather (node 0 → 'y'): the index 5" in answer.err
    assert "it read float32[2, 3], int64[2]" in answer.err

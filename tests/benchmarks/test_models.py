"""The built models: bytes as locked, and answers in ONNX Runtime that are finite and differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from benchmarks.models import __main__ as command
from benchmarks.models import catalog, light
from benchmarks.models.family import serialize
from benchmarks.models.graph import uniform


def preset_cases(*, every_size: bool) -> list[Any]:
    """A parameter (name, sizes) for each preset, at its first size or at each; large ones are for the night."""
    return [
        pytest.param(
            preset.name,
            sizes,
            id="-".join([preset.name, *(f"{name}={size}" for name, size in sizes.items())]),
            marks=[pytest.mark.nightly] if preset.large else [],
        )
        for _, preset in catalog.presets()
        for sizes in (preset.sizes if every_size else preset.sizes[:1])
    ]


def run(model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Every output by name, computed without graph optimisations."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def with_every_value(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with all values between its nodes as outputs too."""
    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    known = {value.name for value in wider.graph.output}
    for node in wider.graph.node:
        wider.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name and name not in known)
    return wider


@pytest.mark.parametrize(("name", "sizes"), preset_cases(every_size=False))
def test_bytes_are_those_of_the_lock_file(name: str, sizes: Mapping[str, int]) -> None:
    assert serialize(catalog.make(name))[1] == catalog.locked()[name]


def test_the_lock_file_names_every_model() -> None:
    assert list(catalog.locked()) == [preset.name for _, preset in catalog.presets()]


@pytest.mark.parametrize(("name", "sizes"), preset_cases(every_size=True))
def test_outputs_are_finite_and_differ(name: str, sizes: Mapping[str, int]) -> None:
    model = catalog.make(name)
    outputs = run(model, catalog.feeds(name, sizes))
    for declared in model.graph.output:
        value = outputs[declared.name]
        shape = tuple(
            sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in declared.type.tensor_type.shape.dim
        )
        assert value.shape == shape
        assert np.isfinite(value).all()
        assert value.std() > 0.05 * np.abs(value).mean(), "all elements are nearly alike"
        assert np.unique(value).size > 0.5 * value.size or "embedding" in declared.name, "many elements are equal"


@pytest.mark.parametrize(("name", "sizes"), preset_cases(every_size=False))
def test_activations_neither_explode_nor_vanish(name: str, sizes: Mapping[str, int]) -> None:
    model = catalog.make(name)
    masks = {output for node in model.graph.node if node.op_type == "Dropout" for output in node.output[1:]}
    values = run(with_every_value(model), catalog.feeds(name, sizes))
    size = {
        key: float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
        for key, value in values.items()
        if value.dtype == np.float32 and value.size > 8 and key not in masks and "mask" not in key
    }
    assert {key: rms for key, rms in size.items() if not 1e-3 < rms < 1e3} == {}


@pytest.mark.parametrize(
    "net", [pytest.param(net, marks=[] if net in light.QUICK else [pytest.mark.nightly]) for net in light.NETS]
)
def test_no_weight_of_a_light_net_is_one_value(net: str) -> None:
    model = light.build(light.Light(net))
    arrays = [
        numpy_helper.to_array(entry) for entry in model.graph.initializer if entry.data_type == onnx.TensorProto.FLOAT
    ]
    assert not [array.shape for array in arrays if np.ptp(array) == 0]
    assert not [node.name for node in model.graph.node if node.op_type == "ConstantOfShape"]


def test_uniform_numbers_have_the_same_bits_everywhere() -> None:
    drawn = uniform("key", (3,), -1.0, 1.0)
    assert drawn.dtype == np.float32
    assert drawn.tobytes().hex() == "e2d6133fa4580bbf820c4bbf"


def test_uniform_numbers_are_uniform() -> None:
    drawn = uniform("another", (200, 500), -2.0, 4.0).astype(np.float64)
    assert drawn.min() >= -2
    assert drawn.max() <= 4
    counts, _ = np.histogram(drawn, bins=20, range=(-2, 4))
    # 20 bins of 5,000: χ² with 19 degrees of freedom exceeds 50 once in 10⁴.
    assert (np.square(counts - 5000) / 5000).sum() < 50


def test_sizes_can_be_changed_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "net.onnx"
    changes = ["--set", "depths=1,1", "--set", "image=32", "--set", "batch=2"]
    assert command.main(["build", "resnet_small", *changes, "-o", str(target)]) == 0
    assert str(target) in capsys.readouterr().out
    model = onnx.load(target)
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [2, 3, 32, 32]
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 1 + 2 * 4


def test_wrong_names_are_answered_with_the_right_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "net.onnx")
    assert command.main(["build", "resnet5", "-o", target]) == 2
    assert "did you mean 'resnet50'?" in capsys.readouterr().err
    assert command.main(["build", "resnet50", "--set", "size=3", "-o", target]) == 2
    assert "this model has depths, width" in capsys.readouterr().err

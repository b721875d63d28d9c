"""Making inputs: what is given goes first, sizes follow from it, what is left is chosen and told."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from argosy.errors import ArgosyError, ModelError, UsageError
from argosy.inputs import InputRequest, make_inputs
from argosy.inputs.files import read_folder, read_outputs, read_value
from argosy.ir.dim import Symbol, symbol_dim
from argosy.ir.dtype import DTYPES, STRING, dtype
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type
from argosy.options import Dimensions

N = symbol_dim(Symbol("N"))
FLOAT = dtype("float32")
TYPES: dict[str, Type] = {"a": TensorType(FLOAT, (N, 3)), "b": TensorType(dtype("int64"), (N * 2,))}


def test_sizes_follow_what_is_given() -> None:
    made = make_inputs(TYPES, InputRequest(), given={"a": np.zeros((5, 3), np.float32)})
    assert made.values["b"].shape == (10,)
    assert made.origins == {"a": "given", "b": "generated, seed 0"}
    assert not made.chosen


def test_a_shape_decides_for_all() -> None:
    made = make_inputs(TYPES, InputRequest(shapes=(("@0", (4, 3)),)))
    assert made.values["a"].shape == (4, 3)
    assert made.values["b"].shape == (8,)
    with pytest.raises(UsageError, match="does not fit"):
        make_inputs(TYPES, InputRequest(shapes=(("a", (4,)),)))


def test_dims_are_taken_in_turn() -> None:
    dims = Dimensions.of({"N": "1,8,32"})
    shapes = [make_inputs(TYPES, InputRequest(), dims, case=case).values["a"].shape[0] for case in range(4)]
    assert shapes == [1, 8, 32, 1]
    bounded = Dimensions.of({"N": "2..9"})
    sizes = [make_inputs(TYPES, InputRequest(), bounded, case=case).values["a"].shape[0] for case in range(12)]
    assert sizes[:2] == [2, 9]
    assert set(sizes) <= set(range(2, 10))
    assert len(set(sizes)) > 3
    assert make_inputs(TYPES, InputRequest(), Dimensions(batch=6)).values["a"].shape == (6, 3)


def test_sizes_that_nobody_gave_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "argosy.inputs"):
        made = make_inputs(TYPES, InputRequest())
    assert made.chosen == {"N": 1}
    assert "N = 1" in caplog.text


def test_an_unknown_rank_needs_a_shape() -> None:
    types: dict[str, Type] = {"a": TensorType(FLOAT, None)}
    with pytest.raises(UsageError, match="does not tell its rank"):
        make_inputs(types, InputRequest())
    assert make_inputs(types, InputRequest(shapes=(("a", (2, 2)),))).values["a"].shape == (2, 2)


def test_names_are_checked_with_a_suggestion() -> None:
    types: dict[str, Type] = {"tokens": TensorType(FLOAT, (2,))}
    for request in (
        InputRequest(fills=(("tokns", 1),)),
        InputRequest(ranges=(("tokns", 0, 1),)),
        InputRequest(files=(("tokns", "x.npy"),)),
        InputRequest(shapes=(("tokns", (2,)),)),
    ):
        with pytest.raises(UsageError, match="did you mean 'tokens'"):
            make_inputs(types, request)


def test_types_that_npy_lacks_are_read_as_raw_bytes(tmp_path: Path) -> None:
    value = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", value)
    found = read_value(tmp_path / "x.npy", "x", TensorType(dtype("bfloat16"), (2, 3)))
    assert found.dtype == ml_dtypes.bfloat16
    assert np.array_equal(found, value)
    np.save(tmp_path / "s.npy", np.array(["one", "two"]))
    assert read_value(tmp_path / "s.npy", "s", TensorType(STRING, (2,))).tolist() == ["one", "two"]


def test_messages_of_onnx_are_read(tmp_path: Path) -> None:
    items = [np.ones(2, np.float32), np.zeros(3, np.float32)]
    sequence = helper.make_sequence("s", onnx.SequenceProto.TENSOR, [numpy_helper.from_array(item) for item in items])
    (tmp_path / "s.pb").write_bytes(sequence.SerializeToString())
    found = read_value(tmp_path / "s.pb", "s", SequenceType(TensorType(FLOAT, None)))
    assert [item.tolist() for item in found] == [item.tolist() for item in items]
    tensor = numpy_helper.from_array(items[0])
    present = helper.make_optional("o", onnx.OptionalProto.TENSOR, tensor)
    (tmp_path / "o.pb").write_bytes(present.SerializeToString())
    assert read_value(tmp_path / "o.pb", "o", OptionalType(TensorType(FLOAT, None))).tolist() == [1, 1]
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff")
    with pytest.raises(ArgosyError, match="no TensorProto"):
        read_value(tmp_path / "bad.pb", "x", TensorType(FLOAT, None))
    wrong = TensorProto(data_type=1, dims=[5])
    (tmp_path / "short.pb").write_bytes(wrong.SerializeToString())
    with pytest.raises(ArgosyError):
        read_value(tmp_path / "short.pb", "x", TensorType(FLOAT, None))


def test_folders_take_names_that_files_cannot_have(tmp_path: Path) -> None:
    types: dict[str, Type] = {"a/b:0": TensorType(FLOAT, (1,)), "c": TensorType(FLOAT, (1,))}
    np.save(tmp_path / "a_b_0.npy", np.ones(1, np.float32))
    np.save(tmp_path / "input_1.npy", np.zeros(1, np.float32))
    assert {name: value.tolist() for name, value in read_folder(tmp_path, types).items()} == {"a/b:0": [1], "c": [0]}


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00garbage", b"PK\x03\x04rubbish"])
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_damaged_files_are_usage_errors(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="can't be read"):
        read_value(tmp_path / name, "x", TensorType(FLOAT, None))


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(UsageError, match="can't be read") as caught:
        read_value(tmp_path / "x.npy", "x", TensorType(STRING, None))
    assert "allow_pickle" not in str(caught.value)
    assert "np.save" in caught.value.hint


def test_outputs_in_a_file_keep_the_names_that_the_model_lacks(tmp_path: Path) -> None:
    items: dict[str, Any] = {"s[0]": np.ones(1), "s[1]": np.ones(2)}
    np.savez(tmp_path / "o.npz", allow_pickle=False, extra=np.ones(1), y=np.zeros(2, np.float32), **items)
    types: dict[str, Type] = {"y": TensorType(FLOAT, (2,)), "s": SequenceType(TensorType(FLOAT, None))}
    found = read_outputs(tmp_path / "o.npz", types)
    assert list(found) == ["y", "s", "extra"]
    assert [item.size for item in found["s"]] == [1, 2]


def test_maps_in_files(tmp_path: Path) -> None:
    kind = MapType(STRING, TensorType(FLOAT, None))
    parts: dict[str, Any] = {"m.keys": np.array(["b", "a"]), "m.values": np.array([1, 2], np.float32)}
    np.savez(tmp_path / "m.npz", allow_pickle=False, **parts)
    assert read_value(tmp_path / "m.npz", "m", kind) == {"b": 1, "a": 2}
    request = InputRequest(source=str(tmp_path / "m.npz"))
    assert make_inputs({"m": kind}, request).values == {"m": {"b": 1, "a": 2}}
    outputs: dict[str, Any] = {"s[0].keys": np.array([3]), "s[0].values": np.array([5], np.float32), **parts}
    np.savez(tmp_path / "o.npz", allow_pickle=False, **outputs)
    numbered = MapType(DTYPES["int64"], TensorType(FLOAT, ()))
    found = read_outputs(tmp_path / "o.npz", {"s": SequenceType(numbered), "e": SequenceType(numbered), "m": kind})
    assert found == {"s": [{3: 5}], "e": [], "m": {"b": 1, "a": 2}}
    np.savez(tmp_path / "bad.npz", allow_pickle=False, **{**parts, "m.keys": np.array(["b"])})
    with pytest.raises(UsageError, match=r"m\.keys is \[1\] and m\.values \[2\]"):
        read_value(tmp_path / "bad.npz", "m", kind)


def test_sizes_that_were_chosen_explain_an_error() -> None:
    chosen = make_inputs(TYPES, InputRequest())
    with pytest.raises(ModelError, match="generated with N = 1"), chosen.explaining():
        raise ModelError("a window of 5 does not fit")
    asked = make_inputs(TYPES, InputRequest(), Dimensions.of({"N": 1}))
    with pytest.raises(ModelError) as caught, asked.explaining():
        raise ModelError("a window of 5 does not fit")
    assert not caught.value.hint

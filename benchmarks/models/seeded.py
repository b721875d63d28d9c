"""Real models for machines that their weights can't be carried to: the same graph, seeded weights.

`python -m benchmarks.models.seeded pack FILE` writes what `scripts/fetch_models.py` fetched into one small file, and
`… unpack FILE FOLDER` makes models of it. Every node, shape, integer and small constant is the model's own; of large
float and 8-bit constants the file holds a note: a seed, and the mean and spread, or the range, that the values had.
What comes out compiles to the kernels of the real model, whose text knows no weights. Its results mean nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import Message
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from benchmarks.models import real

__all__ = ["filled", "pack", "stripped", "unpack"]

_SEEDED: Final = "seeded"
"""Stands for the file in what ONNX says of a tensor whose values lie elsewhere."""
_LEAST: Final = 1024
"""Values of a constant that is not kept as it is."""
_KINDS: Final = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8}
"""Element types of weights. Ints of more bits may be places or sizes."""
_FIELDS: Final = ("raw_data", "float_data", "double_data", "int32_data")


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with notes for large constants. What compresses well is kept: masks and tables may steer a graph."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for tensor in _tensors(result):
        if tensor.data_type in _KINDS and np.prod(tensor.dims, dtype=np.int64) >= _LEAST:
            values = numpy_helper.to_array(tensor)
            raw = np.ascontiguousarray(values).tobytes()
            if np.isfinite(values).all() and len(zlib.compress(raw, 1)) * 4 > len(raw):
                _strip(tensor, values, raw)
    return result


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that `stripped` gave, with values for its notes; equal constants are equal again."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for tensor in _tensors(result):
        if tensor.data_location == TensorProto.EXTERNAL:
            _fill(tensor)
    return result


def pack(names: list[str], file: Path) -> None:
    """Write models of the lock file, by id, that were fetched. Equal models give equal bytes."""
    with tarfile.open(file, "w:xz", preset=9) as archive:
        for name in names:
            model = onnx.load_model(real.model(name).path(), load_external_data=False)
            content = stripped(model).SerializeToString(deterministic=True)
            member = tarfile.TarInfo(f"{name}.onnx")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(file: Path, folder: Path) -> list[Path]:
    """Write the models of a file into a folder; where they lie."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with tarfile.open(file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            name = Path(member.name).name
            if content is None or name != member.name:
                raise ValueError(f"{file} holds {member.name!r}, which is no model that `pack` writes")
            model = filled(onnx.load_model_from_string(content.read()))
            written.append(folder / name)
            written[-1].write_bytes(model.SerializeToString(deterministic=True))
    return written


def _tensors(message: Any) -> Iterator[TensorProto]:
    """Every tensor of a message: initialisers and attributes, also of bodies and functions."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in (value,) if isinstance(value, Message) else value:
                if isinstance(each, TensorProto):
                    yield each
                else:
                    yield from _tensors(each)


def _strip(tensor: TensorProto, values: NDArray[Any], raw: bytes) -> None:
    for field in _FIELDS:
        tensor.ClearField(field)
    low, high = (values.min(), values.max()) if values.dtype.kind in "iu" else (0, 0)
    wide = values.astype(np.float64)
    note = {
        "location": _SEEDED,
        "seed": int.from_bytes(hashlib.sha256(raw).digest()[:6]),
        "mean": float(wide.mean()),
        "spread": float(wide.std()),
        "low": low,
        "high": high,
    }
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in note.items():
        tensor.external_data.add(key=key, value=str(value))


def _fill(tensor: TensorProto) -> None:
    note = {entry.key: entry.value for entry in tensor.external_data}
    if note.get("location") != _SEEDED:
        raise ValueError(f"the values of {tensor.name!r} lie in {note.get('location')!r}, which is not carried")
    generator = np.random.default_rng(int(note["seed"]))
    dtype, shape = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type), tuple(tensor.dims)
    if dtype.kind in "iu":
        values = generator.integers(int(note["low"]), int(note["high"]), shape, dtype, endpoint=True)
    else:
        values = (generator.standard_normal(shape) * float(note["spread"]) + float(note["mean"])).astype(dtype)
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = values.tobytes()


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and do it; the exit status is 0, or 1 for what is not there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models.seeded", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    writer = verbs.add_parser("pack", help="write fetched models into one file")
    writer.add_argument("file", type=Path)
    writer.add_argument("--set", choices=("per-change", "nightly", "all"), default="all", dest="which")
    reader = verbs.add_parser("unpack", help="make models of it")
    reader.add_argument("file", type=Path)
    reader.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.verb == "pack":
            names = [model.id for model in real.models(options.which)]
            pack(names, options.file)
            print(f"{options.file}: {len(names)} models, {options.file.stat().st_size / 1e6:.1f} MB")
        else:
            print(f"{options.folder}: {len(unpack(options.file, options.folder))} models, the weights made up")
    except (OSError, ValueError) as error:
        print(f"benchmarks.models.seeded: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

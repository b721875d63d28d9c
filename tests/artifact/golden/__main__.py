"""Writes the golden artifacts of the present schema: `python -m tests.artifact.golden`.

Files of a schema version are written once and committed for good; a version that exists is left alone unless
`--replace` is given, which is right only before that version has been released.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import argosy
from argosy.artifact.manifest import SCHEMA
from argosy.ir import Builder, Literal, Program, TensorType, dtype
from argosy.ops.control import If, Loop
from argosy.ops.matmul import Dot
from argosy.ops.sequence import SequenceConstruct
from argosy.ops.view import Transpose
from tests.targets.mirror import MirrorTarget

FOLDER = Path(__file__).parent
Case = tuple[Program, dict[str, Any], dict[str, Any]]


def perceptron() -> Case:
    """A weight as an entry of its own, symbolic batch, a prepared weight."""
    rng = np.random.default_rng(1)
    weight, bias = rng.standard_normal((24, 50), np.float32), rng.standard_normal(24, np.float32)
    x = rng.standard_normal((3, 50), np.float32)
    b = Builder()
    given = b.tensor_parameter("x", "float32", ["N", 50])
    turned = b.add(Transpose((1, 0)), b.constant(weight, name="weight"))
    y = b.pointwise(lambda v, c: (v + c).max(0.0), b.add(Dot(), given, turned), b.constant(bias, name="bias"))
    return Program(b.module({"y": y})), {"x": x}, {"y": np.maximum(x @ weight.T + bias, 0)}


def control() -> Case:
    """A branch inside a loop, with captures."""
    b = Builder()
    count, x = b.tensor_parameter("count", "int64", []), b.tensor_parameter("x", "float32", ["N"])
    body = Builder("body", namer=b.namer)
    iteration = body.tensor_parameter("iteration", "int64", [])
    go_on = body.tensor_parameter("condition", "bool", [])
    value = body.parameter("value", x.type)
    then, other = Builder("then", namer=b.namer), Builder("else", namer=b.namer)
    doubled = then.pointwise(lambda v: v * 2.0, then.parameter("value", x.type))
    raised = other.pointwise(lambda v: v + 1.0, other.parameter("value", x.type))
    even = body.pointwise(lambda i: i.mod(2) == 0, iteration)
    op = If(then.module({"value": doubled}), other.module({"value": raised}))
    following = body.add(op, even, value, value)
    module = body.module([("condition", go_on), ("value", following), ("history", following)])
    last, history = b.add_all(Loop(module, carried=1), count, None, x)
    start = np.array([1, -2], np.float32)
    steps = [start * 2, start * 2 + 1, (start * 2 + 1) * 2]
    return (
        Program(b.module({"last": last, "history": history})),
        {"count": np.array(3), "x": start},
        {"last": steps[-1], "history": np.stack(steps)},
    )


def types() -> Case:
    """Short floats, packed integers, a splat, strings and special values."""
    b = Builder()
    x = b.tensor_parameter("x", "float16", [4])
    packed = b.constant(np.array([-8, 7, 3], ml_dtypes.int4), name="packed")
    narrow = b.constant(np.array([1.5, -2.0, 448.0], ml_dtypes.float8_e4m3fn), name="narrow")
    odd = b.constant(np.array([np.nan, np.inf, -0.0, 1.0], np.float32), name="odd")
    text = b.constant(np.array(["α", "", "c"], object), name="text")
    splat = b.constant(Literal.splat(2.5, dtype("float32"), (300, 100)), name="splat")
    given = np.array([1, 2, np.inf, -3], np.float16)
    return (
        Program(
            b.module(
                {
                    "sum": b.pointwise(lambda v, o: v + o, b.convert(x, dtype("float32")), odd),
                    "packed": b.convert(packed, dtype("int32")),
                    "narrow": b.convert(narrow, dtype("float32")),
                    "text": text,
                    "splat": splat,
                }
            )
        ),
        {"x": given},
        {
            "sum": given.astype(np.float32) + np.array([np.nan, np.inf, -0.0, 1.0], np.float32),
            "packed": np.array([-8, 7, 3], np.int32),
            "narrow": np.array([1.5, -2.0, 448.0], np.float32),
            "text": np.array(["α", "", "c"], object),
            "splat": np.full((300, 100), 2.5, np.float32),
        },
    )


def sequence() -> Case:
    """A sequence comes out."""
    b = Builder()
    x = b.parameter("x", TensorType(dtype("int64"), (2,)))
    made = b.add(SequenceConstruct(), x, b.pointwise("neg", x))
    given = np.array([4, -5])
    return Program(b.module({"items": made})), {"x": given}, {"items": [given, -given]}


CASES: dict[str, Callable[[], Case]] = {
    "perceptron": perceptron,
    "control": control,
    "types": types,
    "sequence": sequence,
    "fleet": perceptron,
}


def fleet(program: Program, path: Path) -> None:
    """A merge of two archs with a fallback: provenance, and what a merge keeps."""
    one, two, portable = (
        argosy.compile(program, targets=[target])
        for target in (MirrorTarget(), MirrorTarget(2), MirrorTarget(portable=True))
    )
    one.merge(two, path=path, fallbacks=[portable])


def main() -> int:
    """Write what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replace", action="store_true", help="write the files of this schema version again")
    options = parser.parse_args()
    folder = FOLDER / str(SCHEMA)
    if folder.exists() and not options.replace:
        sys.stderr.write(f"the golden artifacts of schema {SCHEMA} exist; they stay as they are\n")
        return 1
    folder.mkdir(exist_ok=True)
    for name, case in CASES.items():
        program, _, _ = case()
        if name == "fleet":
            fleet(program, folder / "fleet.argosy")
            continue
        argosy.compile(program, targets=["ref", MirrorTarget()]).save(folder / f"{name}.argosy")
    return 0


if __name__ == "__main__":
    sys.exit(main())

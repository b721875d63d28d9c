"""Compile a small real model into one file, and ask it what kinds of files these are.

The model is Magika's (Apache-2.0): a network that tells the type of a file from its first and last 1024 bytes.
`scripts/fetch_models.py magika-model` fetches it and the list of its labels.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import argosy

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / ".models"
FILES = ("README.md", "Makefile", "pyproject.toml", "scripts/demo.py", ".ci/run", "benchmarks/models/models.lock.json")


def tokens(content: bytes, config: dict[str, Any]) -> NDArray[np.int32]:
    """The bytes that the model looks at: the beginning and the end, without blanks, padded to a fixed length."""
    padding, block = config["padding_token"], config["block_size"]
    begin = content[:block].lstrip()[: config["beg_size"]]
    end = content[-block:].rstrip()[-config["end_size"] :]
    row = np.full(config["beg_size"] + config["end_size"], padding, np.int32)
    row[: len(begin)] = np.frombuffer(begin, np.uint8)
    row[row.size - len(end) :] = np.frombuffer(end, np.uint8)
    return row


def main() -> int:
    """Compile, save, load, run; the exit status is 0."""
    config = json.loads((MODELS / "magika-model.json").read_text(encoding="utf-8"))
    target = MODELS / "magika.argosy"

    begin = time.perf_counter()
    argosy.compile(MODELS / "magika-model.onnx", targets=("native",)).save(target)
    print(
        f"compiled into {target.relative_to(ROOT)}, {target.stat().st_size / 1e6:.1f} MB, "
        f"in {time.perf_counter() - begin:.1f} s"
    )

    session = argosy.Session(target)
    batch = np.stack([tokens((ROOT / name).read_bytes(), config) for name in FILES])
    begin = time.perf_counter()
    (scores,) = session.run({"bytes": batch}).values()
    took = time.perf_counter() - begin
    print(f"ran on {len(FILES)} files in {took * 1e3:.0f} ms with the variant {session.variant}")
    for name, row in zip(FILES, scores, strict=True):
        best = int(np.argmax(row))
        print(f"  {name:38} {config['target_labels_space'][best]:12} {row[best]:7.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

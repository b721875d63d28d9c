"""A merge takes memory for its chunks and its manifest, not for the weights: measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from argosy.artifact.artifact_writer import Hashed, array_bytes, write_artifact
from argosy.artifact.manifest import weight_entry
from tests.artifact import samples

MIB = 1 << 20
MERGE = """
import sys
from pathlib import Path
from argosy.cli.main import main

def most():
    "The most memory that this process has had, mapped files too, in bytes."
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

assert main(["list", sys.argv[2], "--json"]) == 0
before = most()
assert main(["merge", *sys.argv[2:], "-o", sys.argv[1], "--json"]) == 0
print(before, most(), file=sys.stderr)
"""


def memory_of_merge(folder: Path, count: int, size: int, holders: str = "ab") -> tuple[int, int]:
    """Most bytes of memory before and after a merge of two artifacts with `count` weights of `size` bytes.

    Those of `holders` embed them, the other one names them.
    """
    paths = [folder / f"{arch}.argosy" for arch in "ab"]
    arrays = {f"w{number}": np.zeros(size, np.uint8) for number in range(count)}
    for number, array in enumerate(arrays.values()):
        array[0] = number
    for path in paths:
        manifest, contents = samples.parts(samples.variant(path.stem), weights=arrays, storage="omitted")
        for (digest, record), array in zip(list(manifest.weights.items()), arrays.values(), strict=True):
            if path.stem in holders:
                manifest.weights[digest] = msgspec.structs.replace(record, storage="embedded")
                contents[weight_entry(digest)] = Hashed(array_bytes(array), digest)
        write_artifact(path, manifest, contents)
    del arrays, contents
    command = [sys.executable, "-c", MERGE, str(folder / "fleet.argosy"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "fleet.argosy").stat().st_size > count * size
    for path in folder.iterdir():
        path.unlink()
    before, after = map(int, done.stderr.split()[-2:])
    return before, after


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
@pytest.mark.parametrize(("count", "size"), [(3, 64 * MIB), (48, 4 * MIB)], ids=["large weights", "many weights"])
def test_a_merge_takes_little_memory(tmp_path: Path, count: int, size: int) -> None:
    before, after = memory_of_merge(tmp_path, count, size)
    assert after - before < 40 * MIB < count * size / 4


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_a_merge_of_two_gigabytes_takes_under_200_megabytes(tmp_path: Path) -> None:
    _, after = memory_of_merge(tmp_path, 16, 128 * MIB, holders="a")
    assert after < 200_000_000

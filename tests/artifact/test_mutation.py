"""20,000 damaged inputs: each is refused with ArtifactError or is a valid artifact; nothing else may come out.

Half of them are damaged under correct checksums and hashes, so that the rules behind those are reached. The seeds
are fixed: a failure repeats by its case and number.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import textwrap
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.container import Container
from argosy.artifact.manifest import variant_folder
from argosy.artifact.plan import PLAN
from argosy.artifact.plan_check import read_plan
from argosy.artifact.program import PROGRAM
from argosy.artifact.program_check import read_program
from argosy.errors import ArtifactError
from tests.artifact import samples
from tests.artifact.mutation import damage_bytes, damage_tree

CHUNK = 500
CHUNKS = 8  # of each of the five kinds: 5 x 8 x 500 = 20,000
VARIANT = samples.variant()
PLAN_ENTRY = f"{variant_folder(VARIANT.key)}plan.msgpack"


@cache
def sample() -> bytes:
    return samples.artifact(VARIANT)


@cache
def contents() -> dict[str, bytes]:
    container = Container(sample())
    return {name: container.read(name, 1 << 30) for name in container.entries}


@cache
def tree(name: str) -> Any:
    decode = msgspec.json.decode if name.endswith(".json") else msgspec.msgpack.decode
    return decode(contents()[name])


def encode(name: str, value: Any) -> bytes:
    encoder = msgspec.json.encode if name.endswith(".json") else msgspec.msgpack.encode
    return encoder(value, order="sorted")


def open_all(data: bytes) -> dict[str, bytes]:
    """Everything that an artifact holds, with every check made."""
    opened = ArtifactFile.open(data)
    opened.verify()
    return {name: opened.read_entry(name) for name in opened.manifest.entries}


def raw_file(rng: random.Random) -> None:
    """Damage anywhere in the file: what still opens has the same contents, because all of them are hashed."""
    found = open_all(damage_bytes(sample(), rng))
    assert found == {name: data for name, data in contents().items() if name != "manifest.json"}


def repaired_entry(rng: random.Random) -> None:
    """Damage inside one entry, with the container and the manifest written anew around it: all checksums are right."""
    name = rng.choice(("program.msgpack", PLAN_ENTRY))
    kept = {n: data for n, data in contents().items() if n != "manifest.json"}
    content = damage_bytes(kept[name], rng) if rng.random() < 0.3 else encode(name, damage_tree(tree(name), rng))
    open_all(samples.unchecked(kept | {name: content}, tree("manifest.json")))


def repaired_manifest(rng: random.Random) -> None:
    """Damage inside the manifest, under a correct checksum."""
    name = "manifest.json"
    content = damage_bytes(contents()[name], rng) if rng.random() < 0.3 else encode(name, damage_tree(tree(name), rng))
    open_all(samples.rebuild(contents() | {name: content}))


def program_and_plan_bytes(rng: random.Random) -> None:
    """Damage to the MessagePack and the JSON of a program and a plan, which no checksum guards here."""
    kind = rng.randrange(4)
    if kind == 0:
        PROGRAM.from_json(damage_bytes(PROGRAM.to_json(samples.program()), rng), where="program")
    elif kind == 1:
        PLAN.from_json(damage_bytes(PLAN.to_json(samples.plan()), rng), where="plan")
    elif kind == 2:
        read_program(damage_bytes(contents()["program.msgpack"], rng), where="program")
    else:
        read_plan(damage_bytes(contents()[PLAN_ENTRY], rng), where="plan")


def program_and_plan_trees(rng: random.Random) -> None:
    """Damage to values of a program or a plan in canonical MessagePack: what reaches the rules between fields."""
    if rng.random() < 0.5:
        read_program(encode("program.msgpack", damage_tree(tree("program.msgpack"), rng)), where="program")
    else:
        read_plan(encode(PLAN_ENTRY, damage_tree(tree(PLAN_ENTRY), rng)), where="plan")


KINDS: dict[str, tuple[Callable[[random.Random], None], float, int]] = {
    # kind: how a case is made, the largest share that may be accepted, the fewest different refusals in a chunk
    "raw file": (raw_file, 0.2, 8),
    "repaired entry": (repaired_entry, 0.4, 20),
    "repaired manifest": (repaired_manifest, 0.3, 20),
    "program and plan bytes": (program_and_plan_bytes, 0.4, 12),
    "program and plan trees": (program_and_plan_trees, 0.4, 25),
}


def run(kind: str, chunk: int, count: int = CHUNK) -> Counter[str]:
    """Outcomes of a chunk of cases: `accepted`, or the refusal with its numbers and names left out."""
    case = KINDS[kind][0]
    outcomes: Counter[str] = Counter()
    for number in range(count):
        rng = random.Random(f"{kind} {chunk} {number}")
        try:
            case(rng)
            outcomes["accepted"] += 1
        except ArtifactError as error:
            outcomes[re.sub(r"'.*?'|\"[^\"]*\"|[-\d.]+|`.*?`", "_", error.what)[:60]] += 1
        except BaseException as error:
            error.add_note(f"kind {kind!r}, chunk {chunk}, number {number}")
            raise
    return outcomes


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs_are_refused_with_artifact_error_only(kind: str, chunk: int) -> None:
    outcomes = run(kind, chunk)
    _, accepted, refusals = KINDS[kind]
    assert outcomes["accepted"] <= accepted * CHUNK, "the damage does not reach what is checked"
    assert len(outcomes) > refusals, "the damage reaches too few of the rules"


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs_allocate_little(kind: str) -> None:
    run(kind, CHUNKS, 5)  # what is cached is not counted
    tracemalloc.start()
    try:
        run(kind, CHUNKS, 150)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20, f"{peak} bytes for inputs of {len(sample())}"


def test_bombs_and_claims_are_refused_within_a_memory_limit() -> None:
    """In a process that may use 300 MB beyond what it starts with, so that one allocation by a claim would kill it."""
    script = textwrap.dedent(
        """
        import resource, zlib
        from argosy.artifact import zipformat
        from argosy.artifact.artifact_file import ArtifactFile
        from argosy.artifact.plan_check import read_plan
        from argosy.artifact.program_check import read_program
        from argosy.artifact.zipformat import Entry
        from argosy.errors import ArtifactError

        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (300 << 20),) * 2)

        def file(packed, size, method=8, stored=None):
            stored = len(packed) if stored is None else stored
            entry = Entry("manifest.json", method, 0, size, stored, 0)
            body = zipformat.local_header(entry) + packed
            directory = zipformat.central_record(entry)
            return body + directory + zipformat.end_records(1, len(body), len(directory))

        def deflated(chunk, count):
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            parts = [packer.compress(chunk) for _ in range(count)]
            return b"".join(parts) + packer.flush()

        zeros = deflated(bytes(1 << 20), 1 << 9)  # 512 MiB in 512 KiB
        brackets = deflated(b"[" * (1 << 20), 60)
        inputs = [
            lambda: ArtifactFile.open(file(zeros, 512 << 20)),
            lambda: ArtifactFile.open(file(zeros, 100)),
            lambda: ArtifactFile.open(file(zeros, 50 << 20)),
            lambda: ArtifactFile.open(file(zeros, 1 << 62)),
            lambda: ArtifactFile.open(file(b"", 1 << 62, 0, 1 << 62)),
            lambda: ArtifactFile.open(file(brackets, 60 << 20)),
            lambda: ArtifactFile.open(zipformat.LOCAL_SIGNATURE + zipformat.end_records(1 << 60, 4, 0)),
        ]
        for read in (read_program, read_plan):
            for field in (b"\\xa7modules", b"\\xa4body", b"\\xa7buffers", b"\\xa8metadata", b"\\xa1x", b""):
                head = b"\\x81" + field if field else b""
                for claim in (b"\\xdd", b"\\xdf", b"\\xdb", b"\\xc6", b"\\xc9"):
                    inputs.append(lambda read=read, raw=head + claim + b"\\xff" * 4: read(raw, where="x"))
                inputs.append(lambda read=read, raw=head + b"\\x91" * (1 << 20): read(raw, where="x"))
        for number, case in enumerate(inputs):
            try:
                case()
            except ArtifactError:
                continue
            raise SystemExit(f"input {number} was accepted")
        print(len(inputs), "refused")
        """
    )
    result = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, "79 refused\n"), result.stderr

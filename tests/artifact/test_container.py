"""The container: what is written opens with common tools, reads back, and any other bytes are refused."""

from __future__ import annotations

import io
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from argosy.artifact import zipformat
from argosy.artifact.container import Container, map_file
from argosy.artifact.container_writer import ContainerWriter
from argosy.artifact.zipformat import Entry
from argosy.errors import ArtifactError, InternalError, UsageError

TEXT = b"argosy " * 500
WEIGHT = np.arange(5000, dtype=np.uint8).tobytes()
CONTENT = {
    "program.msgpack": TEXT,
    "variants/k/code/kernel.so": bytes(range(256)) * 4,
    f"weights/{'0' * 64}": WEIGHT,
    f"weights/{'1' * 64}": b"",
    "manifest.json": b"{}",
}


def write(content: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    writer = ContainerWriter(file)
    for name, data in content.items():
        writer.add(name, data)
    writer.finish()
    return file.getvalue()


def assemble(parts: list[tuple[Entry, bytes]], header: Callable[[Entry], bytes] = zipformat.local_header) -> bytes:
    """A container of hand-made entries: whatever they claim, each is put where its offset says."""
    body = bytearray()
    for entry, data in parts:
        body += bytes(max(0, entry.offset - len(body)))
        body += header(entry) + data
    directory = b"".join(zipformat.central_record(entry) for entry, _ in parts)
    return bytes(body) + directory + zipformat.end_records(len(parts), len(body), len(directory))


def stored(name: str, data: bytes, offset: int = 0, **changed: int) -> tuple[Entry, bytes]:
    fields = {"method": 0, "crc": zlib.crc32(data), "size": len(data), "stored": len(data), "offset": offset} | changed
    return Entry(name=name, **fields), data


def refusal(data: bytes) -> str:
    with pytest.raises(ArtifactError) as caught:
        read_all(data)
    return caught.value.what


def read_all(data: bytes) -> dict[str, bytes]:
    container = Container(data)
    return {name: container.read(name, 1 << 20) for name in container.entries}


def test_content_reads_back() -> None:
    assert read_all(write(CONTENT)) == CONTENT
    assert list(read_all(write(CONTENT))) == [*sorted(set(CONTENT) - {"manifest.json"}), "manifest.json"]


def test_weights_lie_at_page_boundaries_uncompressed() -> None:
    data = write(CONTENT)
    for name, entry in Container(data).entries.items():
        if name.startswith("weights/"):
            assert entry.start % 4096 == 0
            assert data[entry.start : entry.end] == CONTENT[name]
        else:
            assert entry.stored < entry.size or entry.size < 10


def test_zipfile_and_unzip_open_it(tmp_path: Path) -> None:
    path = tmp_path / "a.argosy"
    path.write_bytes(write(CONTENT))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.filename: archive.read(info) for info in archive.infolist()} == CONTENT
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    try:
        result = subprocess.run(["unzip", "-qq", "-t", path], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("unzip is not installed")
    assert (result.returncode, result.stderr) == (0, ""), result


def test_bytes_are_reproducible_and_rendered_from_entries_alone() -> None:
    data = write(CONTENT)
    assert write(CONTENT) == data
    parts = [(entry, data[entry.start : entry.end]) for entry in Container(data).entries.values()]
    assert assemble(parts) == data


def test_content_that_deflates_like_a_bomb_is_stored() -> None:
    content = {"program.msgpack": bytes(4 << 20), "manifest.json": b"{}"}
    container = Container(write(content))
    assert container.entries["program.msgpack"].method == zipformat.STORED
    assert container.read("program.msgpack", 4 << 20) == content["program.msgpack"]


def test_copy_keeps_the_stored_bytes_and_checks_the_content() -> None:
    source = Container(write(CONTENT))
    file = io.BytesIO()
    writer = ContainerWriter(file)
    first = io.BytesIO()
    digests = {name: ContainerWriter(first).add(name, data).sha256 for name, data in CONTENT.items()}
    for name in source.entries:
        writer.copy(source, name, digests[name])
    writer.finish()
    assert file.getvalue() == write(CONTENT)
    for name in ("program.msgpack", f"weights/{'0' * 64}"):
        with pytest.raises(ArtifactError, match="does not match its hash"):
            ContainerWriter(io.BytesIO()).copy(source, name, "0" * 64)


@pytest.mark.parametrize("names", [["b", "a"], ["a", "a"], ["a", "A"], ["manifest.json", "z"], ["/a"], ["a/../b"]])
def test_writer_refuses_names_that_readers_refuse(names: list[str]) -> None:
    writer = ContainerWriter(io.BytesIO())
    for name in names[:-1]:
        writer.add(name, b"")
    with pytest.raises(InternalError, match="can't be written"):
        writer.add(names[-1], b"")


# ------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x08\x08\x12\x04test:" + bytes(64), "it is an ONNX model"),
        (b"\x08\x0a\x3a\x80\x10" + bytes(64), "it is an ONNX model"),
        (b"\x7fELF" + bytes(64), "ELF"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{" + bytes(64), "safetensors"),
        (b"GGUF" + bytes(64), "GGUF"),
        (b"PK\x05\x06" + bytes(18), "empty ZIP"),
        (b"some text", "does not start as a ZIP"),
        (b"P", "does not start as a ZIP"),
    ],
)
def test_foreign_files_are_named(head: bytes, message: str) -> None:
    assert message in refusal(head)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("archive/data.pkl", "PyTorch"),
        ("arr_0.npy", "npz"),
        ("META-INF/MANIFEST.MF", "Java"),
        ("manifest.json", "not written by argosy"),
    ],
)
def test_foreign_zip_files_are_named(name: str, message: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"data")
    assert message in refusal(file.getvalue())


def test_zip_without_manifest_is_refused() -> None:
    assert "without manifest.json" in refusal(write({"program.msgpack": b"x"}))


def test_empty_missing_and_irregular_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(ArtifactError, match="empty"):
        map_file(empty)
    assert "empty" in refusal(b"")
    with pytest.raises(UsageError, match="no such file"):
        map_file(tmp_path / "missing")
    with pytest.raises(UsageError, match="not a regular file"):
        map_file(tmp_path)


def test_every_truncation_is_refused() -> None:
    data = write(CONTENT)
    for length in range(0, len(data), 7):
        refusal(data[:length])
    assert "truncated" in refusal(data[:-30])


def test_garbage_before_after_and_between_is_refused() -> None:
    data = write(CONTENT)
    assert "1 bytes follow" in refusal(data + b"\0")
    assert "not written by argosy" in refusal(data[: data.rfind(b"PK\x06\x06")] + data[data.rfind(b"PK\x06\x06") - 1 :])
    refusal(b"#!/bin/sh\n" + data)
    first = stored("a", b"1")
    gap = stored("manifest.json", b"{}", first[0].end + 5)
    assert "follows bytes that belong to no entry" in refusal(assemble([first, gap]))


def test_overlap_is_refused() -> None:
    first = stored("a", b"123")
    overlap = stored("manifest.json", b"{}", first[0].offset)
    assert "overlaps" in refusal(assemble([first, overlap]))


def test_duplicates_and_disorder_are_refused() -> None:
    first = stored("a", b"1")
    assert "duplicate" in refusal(assemble([first, stored("a", b"1", first[0].end)]))
    assert "out of order" in refusal(assemble([stored("b", b"1"), stored("a", b"1", first[0].end)]))
    assert "only in case" in refusal(assemble([stored("A", b"1"), stored("a", b"1", first[0].end)]))


@pytest.mark.parametrize(
    "name",
    [
        *("../a", "/etc/passwd", "a/../../b", "a\\b", "C:a", "a//b", "a/", "", ".", "a/.", "a\0b"),
        *("weights/é", "a b", "x" * 257),
    ],
)
def test_names_that_leave_the_folder_or_deceive_are_refused(name: str) -> None:
    raw = name.encode()
    record = zipformat.central_record(Entry("x" * len(raw), 0, 0, 0, 0, 0))
    directory = record[:46] + raw + record[46 + len(raw) :]
    data = zipformat.LOCAL_SIGNATURE + directory + zipformat.end_records(1, 4, len(directory))
    assert "is not allowed" in refusal(data)


def change_central(data: bytes, field: int, value: bytes) -> bytes:
    at = data.find(b"PK\x01\x02") + field
    return data[:at] + value + data[at + len(value) :]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (8, b"\x01\x00", "encrypted"),
        (8, b"\x08\x00", "data descriptor"),
        (8, b"\x00\x08", "flags"),
        (34, b"\x01\x00", "another disk"),
        (10, b"\x0c\x00", "compression method 12"),
        (12, b"\x01\x00", "not what argosy writes"),
        (38, b"\xff\xff", "not what argosy writes"),
    ],
)
def test_altered_records_are_refused(field: int, value: bytes, message: str) -> None:
    assert message in refusal(change_central(write(CONTENT), field, value))


def test_local_header_that_contradicts_is_refused() -> None:
    data = bytearray(write(CONTENT))
    for at in (6, 8, 14, 30, 50):
        altered = bytes(data[:at]) + bytes([data[at] ^ 1]) + bytes(data[at + 1 :])
        assert "contradicts" in refusal(altered)


def test_hidden_padding_is_refused() -> None:
    data = bytearray(write(CONTENT))
    entry = Container(bytes(data)).entries[f"weights/{'0' * 64}"]
    data[entry.start - 1] = 1
    assert "contradicts" in refusal(bytes(data))


def test_damaged_content_is_refused() -> None:
    data = bytearray(write(CONTENT))
    entries = Container(bytes(data)).entries
    for name in ("program.msgpack", f"weights/{'0' * 64}"):
        altered = bytearray(data)
        altered[entries[name].start + 3] ^= 0x55
        assert "damaged" in refusal(bytes(altered))


def test_huge_claims_are_refused() -> None:
    for size in (1 << 40, (1 << 64) - 1):
        assert "more than the file has" in refusal(assemble([stored("manifest.json", b"{}", size=size, stored=size)]))
        assert "claims two sizes" in refusal(assemble([stored("manifest.json", b"{}", size=size)]))
        assert "claims to inflate" in refusal(assemble([stored("manifest.json", b"{}", size=size, method=8)]))
    many = zipformat.end_records(1 << 30, 4, 0)
    assert "claims 1073741824 entries" in refusal(zipformat.LOCAL_SIGNATURE + many)


def test_bombs_are_refused() -> None:
    def bomb(real: int, claimed: int) -> bytes:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(bytes(real)) + packer.flush()
        return assemble([stored("manifest.json", packed, method=8, size=claimed)])

    assert "claims to inflate" in refusal(bomb(64 << 20, 64 << 20))
    assert "does not inflate to its 1000 bytes" in refusal(bomb(64 << 20, 1000))
    assert "does not inflate" in refusal(bomb(0, 1))
    assert "at most 1048576" in refusal(bomb(2 << 20, (1 << 20) + 1))


def test_deflated_stream_with_a_tail_is_refused() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"{}") + packer.flush() + b"hidden"
    data = assemble([stored("manifest.json", packed, method=8, size=2, crc=zlib.crc32(b"{}"))])
    assert "does not inflate" in refusal(data)


def test_compressed_weight_is_refused() -> None:
    name = f"weights/{'0' * 64}"
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"1234") + packer.flush()
    assert "is compressed" in refusal(assemble([stored(name, packed, method=8, size=4, crc=zlib.crc32(b"1234"))]))


def test_multi_disk_archive_is_refused() -> None:
    data = bytearray(write(CONTENT))
    struct.pack_into("<H", data, len(data) - 18, 1)
    assert "not written by argosy" in refusal(bytes(data))


def test_entry_larger_than_four_gib_keeps_its_size() -> None:
    """The records of a 5 GiB weight, without writing one: sizes and offsets are 64 bits wide everywhere."""
    entry = Entry(f"weights/{'0' * 64}", 0, 1, 5 << 30, 5 << 30, 6 << 30)
    assert entry.end == entry.start + (5 << 30)
    record = zipformat.central_record(entry)
    fields = zipformat.CENTRAL.unpack(record[:46] + record[46 + len(entry.name) :])
    assert fields[-3:] == (5 << 30, 5 << 30, 6 << 30)

"""Says what a file is that is not an artifact, so that the error tells the user what to do with it."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["Kind", "kind_of", "zip_kind_of"]

_COMPILE: Final = "compile it first: argosy compile MODEL -o FILE.argosy"
_OTHER: Final = "give a file that argosy compile wrote"


class Kind(msgspec.Struct, frozen=True):
    """What a file is, in words, and what to do."""

    what: str
    hint: str = _OTHER


_MAGIC: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"version https://git-lfs", Kind("it is a Git LFS pointer; the content was not fetched", "run: git lfs pull")),
    (b"\x7fELF", Kind("it is an ELF object")),
    (b"\x1f\x8b", Kind("it is gzip-compressed", "unpack it first")),
    (b"\xfd7zXZ", Kind("it is xz-compressed", "unpack it first")),
    (b"\x28\xb5\x2f\xfd", Kind("it is zstd-compressed", "unpack it first")),
    (b"\x93NUMPY", Kind("it is a numpy array")),
    (b"\x89HDF", Kind("it is an HDF5 file (a Keras model?)", "export the model to ONNX")),
    (b"GGUF", Kind("it is a GGUF file", "export the model to ONNX")),
    (b"ORTM", Kind("it is an ONNX Runtime ORT-format model", "compile the ONNX model it came from")),
    (b"\x80\x02", Kind("it is a Python pickle", "export the model to ONNX")),
    (b"PK\x05\x06", Kind("it is an empty ZIP file")),
    (b"<", Kind("it is a web page or an XML file (a failed download?)", "download it again")),
    (b"{", Kind("it is JSON text")),
)


def kind_of(head: bytes) -> Kind:
    """What the file is that starts with `head` (64 bytes serve); it is no ZIP file."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[4:8] in (b"ORTM", b"TFL3"):
        return Kind("it is a flatbuffer model (ORT or TFLite)", "compile the ONNX model it came from")
    if len(head) > 8 and head[8:9] == b"{":
        return Kind("it is a safetensors file", "export the model to ONNX")
    # ModelProto: field 1 (ir_version) as a varint, then a string or submodel of fields 2 to 14.
    if len(head) > 3 and head[0] == 0x08 and head[1] < 0x20 and head[2] in range(0x12, 0x73):
        return Kind("it is an ONNX model", _COMPILE)
    return Kind("it does not start as a ZIP file does")


def zip_kind_of(head: bytes) -> Kind | None:
    """What ZIP file starts with `head`, judged by the name of its first entry; None where it may be ours."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("latin-1")
    if name.endswith(("/data.pkl", "/byteorder", "/.format_version")):
        return Kind("it is a PyTorch file", "export the model to ONNX")
    if name.endswith(".npy"):
        return Kind("it is a numpy .npz file")
    if name.startswith("META-INF/"):
        return Kind("it is a Java archive")
    if name == "[Content_Types].xml":
        return Kind("it is an office document")
    if name in ("metadata.json", "config.json", "model.onnx"):
        return Kind("it is a ZIP file of something else", "unpack it first")
    return None

"""The ONNX frontend. The package `onnx` reads the wire format; everything above that is ours."""

from argosy.frontends.onnx.importer import ImportOptions, load

__all__ = ["ImportOptions", "load"]

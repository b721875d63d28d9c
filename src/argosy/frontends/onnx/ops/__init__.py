"""Handlers, spelled like the ONNX ops, a family per file."""

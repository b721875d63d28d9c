"""The CPU target beside ONNX Runtime and OpenVINO: `python -m benchmarks.cpu`."""

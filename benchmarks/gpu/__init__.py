"""The GPU target beside PyTorch: `pack` compiles anywhere, `run` measures on the device."""

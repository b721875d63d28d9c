"""Functional emulation of code for AMD GPUs: what Triton's assembly does, instruction by instruction, with no GPU."""

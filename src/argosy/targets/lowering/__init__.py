"""What lowering to a Plan is on every target: buffers, control flow, what may be done at load."""

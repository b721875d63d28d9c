"""Targets: IR to plans and code, a folder each. A target registers itself under its name when its folder is imported."""

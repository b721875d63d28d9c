"""Targets: IR to plans and code, a folder each. A target registers itself when its folder is imported."""

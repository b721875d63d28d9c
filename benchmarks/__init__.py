"""Models to measure with, and what measures them."""

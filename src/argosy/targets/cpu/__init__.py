"""The CPU target: every op as generated, freestanding C."""

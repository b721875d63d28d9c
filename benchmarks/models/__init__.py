"""Models for tests and benchmarks: real ones fetched from packages, and built ones with seeded weights."""

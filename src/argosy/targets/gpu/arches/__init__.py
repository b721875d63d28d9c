"""The GPUs by vendor: a row for each arch, the products that have them, and what the toolchain does not build for."""

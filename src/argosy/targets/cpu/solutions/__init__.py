"""Ways to do one fused op on a CPU, a family per file."""

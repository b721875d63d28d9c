"""GPUs: drivers through ctypes, device memory, plans run by launches and captured graphs."""

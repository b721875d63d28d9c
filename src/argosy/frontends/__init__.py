"""Readers of model formats: bytes in, a Program out."""

"""The derivatives of the ops, a family per file."""

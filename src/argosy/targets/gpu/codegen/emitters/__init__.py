"""What writes one element of an op, a family per file; `codegen.element` finds them by folder."""

"""What each op means: one class per op, a family per file. The registry imports them on first use."""

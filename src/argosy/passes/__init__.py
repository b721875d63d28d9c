"""What is done to programs: one pass per file, run by the manager in phases that a target lists."""

"""Ways to do ops on a GPU, a family per file; `solution.solutions_for` finds them by folder."""

"""The verbs, one a file. A file in this folder registers its verb; nothing else names it."""

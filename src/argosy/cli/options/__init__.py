"""Options that several verbs share, a group a file: how they are declared, and what they mean as values."""

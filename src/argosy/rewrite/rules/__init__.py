"""The rules, a family per file; each ends with `RULES`, the set of its own. Passes say which sets they apply."""

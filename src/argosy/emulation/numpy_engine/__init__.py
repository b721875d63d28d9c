"""The engine in numpy: registers are arrays over waves and lanes, and waves at the same place go on together."""

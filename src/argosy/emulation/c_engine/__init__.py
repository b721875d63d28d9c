"""The engine in C: built once for this machine, with a function for each operation of the table."""

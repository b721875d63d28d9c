"""C text: elements, loop nests, kernels, and the prelude of types, conversions and functions that they build on."""

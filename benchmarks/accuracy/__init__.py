"""The largest errors against float64, by op family and element type: on this CPU, emulated, and on GPUs elsewhere."""

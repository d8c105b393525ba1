"""Stage 6: `.ttnn` binaries, to and from plain Python. Imports neither torch nor torch_mlir."""

"""Stage 6: converts `.ttnn` binaries to and from plain Python values. It imports neither torch nor torch_mlir."""

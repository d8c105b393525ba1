"""Compares random programs with eager PyTorch: `tt-torch fuzz`."""

"""Random programs, compared with eager PyTorch: `tt-torch fuzz`."""

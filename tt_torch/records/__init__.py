"""Records of sweeps and op-by-op runs: how they are written and read, and what they say when counted."""

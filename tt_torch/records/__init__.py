"""Records of sweeps and op-by-op runs: writing, reading and counting them."""

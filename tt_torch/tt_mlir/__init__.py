"""tt-mlir's own compiler, as a second way from StableHLO to a binary: as a PJRT plugin, or as command-line tools."""

"""Worker processes, here or on a Ray cluster: an item that crashes, hangs or eats memory costs nothing else."""

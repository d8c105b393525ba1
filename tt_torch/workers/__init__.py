"""Worker processes, here or on a Ray cluster: an item that crashes, hangs or uses too much memory fails alone."""

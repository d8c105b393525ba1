"""Drives the compilation of a captured graph through all stages. Also devices, host ops, and programs from files."""

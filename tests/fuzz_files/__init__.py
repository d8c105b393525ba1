"""Hostile files of every kind, read by everything that reads files: `python -m tests.fuzz_files`."""

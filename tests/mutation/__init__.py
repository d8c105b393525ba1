"""Breaks one place of the package at a time, and reports the breaks that no test notices: see docs/testing.md.

The suite does not run it. A developer does, with `python -m tests.mutation`.
"""

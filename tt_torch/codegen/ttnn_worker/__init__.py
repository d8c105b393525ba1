"""What runs in a Python that has the `ttnn` package, where tt_torch is not installed.

These files import that package, NumPy, the standard library and each other, the last by relative imports.
"""

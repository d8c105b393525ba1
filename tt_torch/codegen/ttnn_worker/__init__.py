"""The code that runs in a Python that has the `ttnn` package but not tt_torch.

These files import only that package, NumPy, the standard library and, by relative imports, each other.
"""

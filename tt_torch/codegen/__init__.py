"""A binary on Tenstorrent's own library: as a Python program, checked by it, and run by it."""

from tt_torch.codegen.source import to_python, write_program

__all__ = ["to_python", "write_program"]

"""Uses a binary with Tenstorrent's own library: writes it as a Python program, checks it, and runs it."""

from tt_torch.codegen.source import to_python, write_program

__all__ = ["to_python", "write_program"]

"""The one door to private PyTorch.

A name of PyTorch is private, as PyTorch's own rule for its API has it, if any part of its path begins with an
underscore. So is what lies in `torch.fx.experimental` and `functorch`. Names of ops, such as `aten._to_copy`, are data
that graphs are made of, and not private. `tests/test_torch_private.py` reads the package and fails on a private name
outside of this folder.

Each name here has a comment with the version of PyTorch that it was read in, and what breaks without it. An upgrade
fails the same test until each of them was read again.
"""

"""The only place where the package uses private names of PyTorch.

By PyTorch's own rule, a name is private if any part of its path begins with an underscore. The names in
`torch.fx.experimental` and `functorch` count as private, too. Names of ops, such as `aten._to_copy`, are data in graphs
and do not count. `tests/test_torch_private.py` reads the package and fails on a private name outside of this folder.

Each name here has a comment with the version of PyTorch in which it was read, and what breaks without it. After an
upgrade of PyTorch, the same test fails until each name has been read again.
"""

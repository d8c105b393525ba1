"""The compile cache as a part of `torch.compiler.save_cache_artifacts` and `load_cache_artifacts`.

Importing this module makes the entries of the compile cache known to PyTorch. PyTorch imports it by itself, through the
entry point `torch.backends`, so that a process that imports only torch can load entries.
"""

from __future__ import annotations


def autoload() -> None:
    """The entry point of the group `torch.backends`. It does nothing, because importing this module has registered.

    It is defined above the imports, because importing PyTorch below may already call it.
    """


from tt_torch.torch_private import cache_artifacts  # noqa: E402


def _populate(key: str, content: bytes) -> None:
    from tt_torch.driver.cache import store  # not above: `import torch` alone needs none of it

    store.take(key, content)


cache_artifacts.register(_populate)

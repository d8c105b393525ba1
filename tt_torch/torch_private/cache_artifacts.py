"""PyTorch's store of cache entries for `torch.compiler.save_cache_artifacts` and `load_cache_artifacts`."""

from __future__ import annotations

from collections.abc import Callable

from torch.compiler._cache import (
    CacheArtifact,  # 2.13.0: without it load_cache_artifacts could not give us entries of our compile cache
    CacheArtifactFactory,  # 2.13.0: the same
    CacheArtifactRecorder,  # 2.13.0: without it save_cache_artifacts would leave out entries of our compile cache
)

KIND = "tt_torch"  # the name of our entries there


def register(populate: Callable[[str, bytes], None]) -> None:
    """Makes our entries known. `populate` gets the key and the content of each entry that somebody loads."""

    class Artifact(CacheArtifact):
        def populate_cache(self) -> None:
            populate(self.key, self.content)

        @staticmethod
        def type() -> str:
            return KIND

    CacheArtifactFactory.register(Artifact)


def record(key: str, content: bytes) -> None:
    """Adds an entry to those that `save_cache_artifacts` returns."""
    CacheArtifactRecorder(KIND, key).record(content)

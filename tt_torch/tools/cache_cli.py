"""`tt-torch cache` shows what the compile cache has, and clears it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tt_torch.cli_errors import one_line_errors
from tt_torch.command_line import AsJson, print_json

if TYPE_CHECKING:
    from tt_torch.driver.cache.store import Store

app = typer.Typer(
    no_args_is_help=True,
    help="The compile cache: compilations on disk, for later processes. TT_TORCH_CACHE_DIR names its folder.",
)


@app.command()
def stats(as_json: AsJson = False) -> None:
    """Shows the folder, the entries and their bytes, and how often all processes together hit and missed them."""
    import dataclasses

    with one_line_errors():
        store = _store()
        found = store.stats()
    if as_json:
        print_json({"folder": str(store.folder), "bound": store.bound, **dataclasses.asdict(found)})
        return
    bound = f"at most {store.bound:,}" if store.bound else "TT_TORCH_CACHE_SIZE=0 turns the cache off"
    print(f"folder   {store.folder}")
    print(f"entries  {found.entries}")
    print(f"bytes    {found.bytes:,} ({bound})")
    print(f"hits     {found.hits}")
    print(f"misses   {found.misses}")


@app.command()
def clear(as_json: AsJson = False) -> None:
    """Removes all entries and the counts of hits and misses."""
    with one_line_errors():
        before = _store().clear()
    if as_json:
        return print_json({"entries": before.entries, "bytes": before.bytes})
    print(f"removed {before.entries} entries, {before.bytes:,} bytes")


def _store() -> Store:
    """The cache that the environment variables name, also if they turn it off."""
    from tt_torch.config import CompilerConfig
    from tt_torch.driver.cache.store import Store, folder_of

    config = CompilerConfig.from_env()
    return Store(folder_of(config), config.cache_size)

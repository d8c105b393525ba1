"""The folder of the compile cache: damage, bounds, several processes, folders that cannot be used, the command."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from typer.testing import CliRunner

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.driver.cache import store as stores
from tt_torch.driver.cache.store import CacheWarning, Stats, Store, store_of
from tt_torch.driver.package.contents import sealed
from tt_torch.tools.cli import app

KEYS = [f"{i:064x}" for i in range(5)]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(user_code, "_once", set())
    return Store(tmp_path / "cache", 1 << 20)


def put(store: Store, key: str, value: int = 7, size: int = 1000) -> Path:
    store.write(key, {"value": value}, {"x": torch.full((size,), value, dtype=torch.uint8)})
    return store.folder / f"{key}.ttcache"


def got(store: Store, key: str) -> int | None:
    found = store.read(key)
    if found is None:
        return None
    data, tensors = found
    assert set(tensors["x"].tolist()) == {data["value"]}
    return data["value"]


def test_what_was_written_is_read_and_counted(store: Store) -> None:
    assert got(store, KEYS[0]) is None
    path = put(store, KEYS[0])
    assert got(store, KEYS[0]) == 7 and got(store, KEYS[1]) is None
    expected = Stats(1, path.stat().st_size, 1, 2)
    assert store.stats() == expected
    (store.folder / "notes.txt").write_text("not ours")
    assert store.clear() == expected
    assert store.stats() == Stats(0, 0, 0, 0) and (store.folder / "notes.txt").exists()


def damaged() -> dict[str, object]:
    """Ways to change the bytes of an entry."""
    tensors = {"x": torch.full((9,), 7, dtype=torch.uint8)}
    other_key = save(tensors, sealed({"value": 7, "format": stores.FORM, "key": KEYS[1]}, tensors))
    no_key = save(tensors, sealed({"value": 7, "format": stores.FORM}, tensors))
    newer = save(tensors, sealed({"value": 7, "format": "compile cache 2", "key": KEYS[0]}, tensors))
    flip = [lambda b, i=i: b[: i % len(b)] + bytes([b[i % len(b)] ^ 1]) + b[i % len(b) + 1 :] for i in (0, 9, 250, -1)]
    whole = {"another key": other_key, "no key": no_key, "newer": newer, "empty": b"", "foreign": b"hello" * 99}
    return (
        {f"byte {i}": f for i, f in enumerate(flip)}
        | {"cut": lambda b: b[:-1], "half": lambda b: b[: len(b) // 2], "longer": lambda b: b + b"\0"}
        | {name: lambda b, content=content: content for name, content in whole.items()}
    )


@pytest.mark.parametrize("name", damaged())
def test_a_damaged_entry_is_told_once_and_replaced(store: Store, name: str) -> None:
    path = put(store, KEYS[0])
    path.write_bytes(damaged()[name](path.read_bytes()))  # type: ignore[operator]
    with pytest.warns(CacheWarning, match="cannot be used, and is made again"):
        assert got(store, KEYS[0]) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert got(store, KEYS[0]) is None
        put(store, KEYS[0], 8)
        assert got(store, KEYS[0]) == 8
        path.write_bytes(b"damaged again")
        assert got(store, KEYS[0]) is None


def test_the_least_recently_used_entries_go(store: Store) -> None:
    size = put(store, KEYS[0]).stat().st_size
    small = Store(store.folder, 3 * size)
    for key in KEYS[1:3]:
        put(small, key)
    for age, key in enumerate((KEYS[1], KEYS[0], KEYS[2])):
        os.utime(store.folder / f"{key}.ttcache", (0, 1000 + age))
    assert got(small, KEYS[1]) == 7  # now it is the newest
    put(small, KEYS[3])
    assert [got(small, key) for key in KEYS] == [None, 7, 7, 7, None]
    put(small, KEYS[4], size=10 * size)  # above the bound by itself
    assert [got(small, key) for key in KEYS] == [None, 7, 7, 7, None]
    assert small.stats().bytes <= small.bound


def _write_for_ever(store: Store, child: int) -> None:
    for value in range(256):
        for key in KEYS:
            put(store, key, value, 20_000 + child)
            store.read(key)


def test_processes_that_are_killed_leave_only_whole_entries(store: Store) -> None:
    """Four processes write and read the same keys beyond the bound. Each is killed at another time."""
    store = Store(store.folder, 70_000)
    children = []
    for child in range(4):
        pid = os.fork()
        if not pid:
            try:
                _write_for_ever(store, child)
            finally:
                os._exit(1)
        children.append(pid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pid in children:
            time.sleep(0.07)
            os.kill(pid, signal.SIGKILL)
            assert os.waitpid(pid, 0)[1] == signal.SIGKILL  # it was still at work, and had no error
            for key in KEYS:
                got(store, key)
        put(store, KEYS[0], 3)
        assert got(store, KEYS[0]) == 3
    assert store.stats().bytes <= store.bound
    assert not [path for path in store.folder.iterdir() if "unfinished" in path.name]


def test_a_folder_that_cannot_be_written_is_a_warning_once(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    blocked = Store(tmp_path / "file" / "cache", 1 << 20)
    with pytest.warns(CacheWarning) as told:
        assert got(blocked, KEYS[0]) is None
        put(blocked, KEYS[0])
        put(blocked, KEYS[1])
    assert len(told) == 1 and blocked.stats() == Stats(0, 0, 0, 0)


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOENT])
def test_an_entry_is_used_if_its_time_cannot_be_set(store: Store, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """A folder may be on a read-only disk, it may be another user's, or another process may remove an entry."""
    put(store, KEYS[0])

    def refuse(path: Path) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "utime", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert got(store, KEYS[0]) == 7


def test_where_the_cache_is_and_how_it_is_off(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert store_of(CompilerConfig()) == Store(Path("/x/tt_torch/compile"), 1 << 30)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert store_of(CompilerConfig(cache_size=5)) == Store(Path("/home/me/.cache/tt_torch/compile"), 5)
    assert store_of(CompilerConfig(cache_dir="~/c")) == Store(Path("/home/me/c"), 1 << 30)
    assert store_of(CompilerConfig(cache_size=0)) is None
    with torch.compiler.config.patch(force_disable_caches=True):
        assert store_of(CompilerConfig()) is None

    def no_home(cls: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(no_home))
    with pytest.warns(CacheWarning, match="set TT_TORCH_CACHE_DIR"):
        assert store_of(CompilerConfig()) is None


def test_the_command(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_CACHE_DIR", str(store.folder))
    monkeypatch.setenv("TT_TORCH_CACHE_SIZE", "5000000")
    size = put(store, KEYS[0]).stat().st_size
    got(store, KEYS[0])
    shown = CliRunner().invoke(app, ["cache", "stats"]).stdout
    assert shown.split() == (
        f"folder {store.folder} entries 1 bytes {size:,} (at most 5,000,000) hits 1 misses 0".split()
    )
    as_json = json.loads(CliRunner().invoke(app, ["cache", "stats", "--json"]).stdout)
    assert as_json == {"folder": str(store.folder), "bound": 5000000} | vars(store.stats())
    monkeypatch.setenv("TT_TORCH_CACHE_SIZE", "0")
    assert "(TT_TORCH_CACHE_SIZE=0 turns the cache off)" in CliRunner().invoke(app, ["cache", "stats"]).stdout
    assert CliRunner().invoke(app, ["cache", "clear"]).stdout == f"removed 1 entries, {size:,} bytes\n"
    assert got(store, KEYS[0]) is None

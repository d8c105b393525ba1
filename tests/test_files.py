"""Files are written completely or not at all, by many processes and threads, and whatever their names."""

from __future__ import annotations

import itertools
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Server

from tt_torch.files import require_writable, write, write_by, write_new


def test_a_file_is_written_with_its_folder_and_the_usual_rights(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.bin"
    write(path, b"content")
    (tmp_path / "plain").write_bytes(b"")
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert os.listdir(path.parent) == ["b.bin"]


def by_renaming(file: Path) -> None:
    """Writes as safetensors does."""
    other = file.with_name(".other")
    other.touch(0o600)
    other.write_bytes(b"content")
    other.replace(file)


def test_a_library_may_rename_a_file_of_its_own(tmp_path: Path) -> None:
    """The file has the usual rights, and another process that writes to the folder meanwhile does not remove it."""
    (tmp_path / "plain").write_bytes(b"")

    def fill(file: Path) -> None:
        by_renaming(file)
        write(tmp_path / "meanwhile", b"")

    write_by(tmp_path / "new", fill)
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["meanwhile", "new", "plain"]


def test_a_file_keeps_its_rights_and_links_stay_links(tmp_path: Path) -> None:
    secret, link = tmp_path / "secret", tmp_path / "link"
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    link.symlink_to("secret")
    write(link, b"new")
    assert link.is_symlink() and secret.read_bytes() == b"new"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    dangling = tmp_path / "dangling"
    dangling.symlink_to("not yet")
    write(dangling, b"made")
    assert dangling.is_symlink() and (tmp_path / "not yet").read_bytes() == b"made"


def test_what_is_no_file_receives_the_content_and_is_not_replaced(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe, b"content")
    reader.join()
    assert received == [b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"content")


@pytest.mark.parametrize("name", ["n" * 255, "-rf", "a b'\"c", ".hidden", "ü" * 127])
def test_any_name_that_a_file_can_have(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, b"1")
    write(tmp_path / name, b"2")
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"2"


def test_new_files_get_names_of_their_own(tmp_path: Path) -> None:
    names: list[Path] = []
    _run(lambda i: names.append(write_new((tmp_path / str(n) for n in itertools.count()), str(i).encode())), 16)
    assert {path.name for path in names} == set(os.listdir(tmp_path)) == set(map(str, range(16)))
    assert {path.read_text() for path in names} == set(map(str, range(16)))
    write_new([tmp_path / "0", tmp_path / "new"], b"")
    assert (tmp_path / "new").stat().st_nlink == 1 and (tmp_path / "0").read_bytes()


def _run(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_write_to_one_path_do_not_disturb_each_other(tmp_path: Path) -> None:
    path, failures = tmp_path / "file", list[BaseException]()

    def work(i: int) -> None:
        try:
            for _ in range(50):
                write(path, bytes([i]) * 100_000)
                assert len(set(path.read_bytes())) == 1
        except BaseException as failure:
            failures.append(failure)

    _run(work, 8)
    assert not failures
    assert os.listdir(tmp_path) == ["file"]


def test_a_failing_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, b"old")
    with pytest.raises(TypeError):
        write(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_takes_no_file_is_named() -> None:
    with pytest.raises(OSError, match=r": '/proc/1'$"):
        write("/proc/1/file", b"new")


def test_that_a_file_can_be_written_is_known_before(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path / "old", b"old")
    for name in ("pipe", "old", "new", "folder/new"):
        require_writable(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "old", "pipe"] and os.listdir(tmp_path / "folder") == []
    assert (tmp_path / "old").read_bytes() == b"old"
    for refused in (tmp_path, tmp_path / "old" / "new", Path("/proc/1/file")):
        with pytest.raises(OSError):
            require_writable(refused)


KILLED = """
import os, signal, sys
from pathlib import Path
from tt_torch import files

files.Path.replace = lambda self, path: os.kill(os.getpid(), signal.SIGKILL)
files.write(sys.argv[1], b"new")
"""


def test_the_next_write_removes_what_a_killed_process_left(tmp_path: Path, forks: Server) -> None:
    path = tmp_path / "file"
    write(path, b"old")
    done = forks.run("-c", KILLED, path)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(os.listdir(tmp_path)) == 3  # a lock and a folder
    write(tmp_path / "another", b"")
    assert sorted(os.listdir(tmp_path)) == ["another", "file"]

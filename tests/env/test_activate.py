"""env/activate in bash and zsh, with a stand-in for Python: the commands that it runs, and the state that it leaves."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import tomllib

REPO = Path(__file__).parents[2]
SHELLS = [shell for shell in ("bash", "zsh") if shutil.which(shell)]

# Makes real venvs without pip, and logs each call of pip. A call fails if its arguments contain the text of FAIL. SLOW
# makes all calls wait, and SLOW_BUILD makes the call for the build wait. With MEET, the call for the requirements waits
# until the call for the build has come.
PYTHON = f"""#!/bin/sh
case "$*" in
"-m venv "*)
  {sys.executable} -m venv --without-pip "$3"
  cp --remove-destination "$0" "$3/bin/python" ;;
*" pip "*)
  echo "${{@##*/}}" | tail -c 40 >> "$CALLS"
  sleep "${{SLOW:-0}}"
  case "$*" in *" --editable "*) sleep "${{SLOW_BUILD:-0}}" ;; esac
  case "$MEET $*" in 1*" -r "*) until grep -q 'repo$' "$CALLS"; do sleep 0.1; done ;; esac
  case "$*" in *"${{FAIL:-no failure}}"*) echo "no such package"; exit 1 ;; esac ;;
--version) echo Python 3.11 ;;
esac
"""

ECHO = 'echo "code=$? home=$TT_TORCH_HOME python=$(command -v python)"'


@pytest.fixture
def repo(tmp_path):
    """A repository with the real env folder and one C++ file. The stand-in is in a folder that comes first in PATH."""
    root = tmp_path / "a repo"
    (root / "env").mkdir(parents=True)
    for name in ("activate", "setup", "requirements.txt"):
        shutil.copy(REPO / "env" / name, root / "env")
    (root / "tt_torch").mkdir()
    for name in ("CMakeLists.txt", "pyproject.toml", "tt_torch/runtime.cpp", "tt_torch/config.py"):
        (root / name).write_text("first")
    for name in ("python3.11", "c++"):
        tool(tmp_path / "bin", name, PYTHON)
    tool(tmp_path / "bin", "apt-get", "#!/bin/sh\nexit 1\n")  # fails, so set-up fails if a system package is missing
    return root


def tool(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def environment(repo, **extra):
    path = f"{repo.parent / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(repo.parent), "CALLS": str(repo.parent / "calls"), **extra}


def start(repo, shell="bash", then=ECHO, **extra):
    """Sources activate from another folder, in a shell that does not read the user's settings."""
    script = f". '{repo}/env/activate'; {then}"
    options = ["-f"] if shell == "zsh" else ["--norc"]
    return subprocess.Popen(
        [shell, *options, "-c", script],
        cwd="/",
        env=environment(repo, **extra),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A process in the background of a script ignores SIGINT. If pytest is one, this shell would ignore it, too.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def source(repo, shell="bash", **options):
    process = start(repo, shell, **options)
    out, err = process.communicate(timeout=60)
    return out.strip(), err.strip()


def pip_calls(repo):
    """The number of pip calls since the last call of this function."""
    calls = repo.parent / "calls"
    count = len(calls.read_text().splitlines()) if calls.exists() else 0
    calls.unlink(missing_ok=True)
    return count


@pytest.mark.parametrize("shell", SHELLS)
def test_sets_up_once_then_only_activates(repo, shell):
    expected = f"code=0 home={repo} python={repo}/env/venv/bin/python"
    out, err = source(repo, shell)
    assert out == expected and "ready" in err
    assert pip_calls(repo) == 4  # torch, the tools of the build, the other packages, and the C++ build
    begin = time.perf_counter()
    assert source(repo, shell) == (expected, "")
    assert time.perf_counter() - begin < 1  # 0.05 s on an idle machine
    assert pip_calls(repo) == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_sourced_twice_in_one_shell_and_deactivated(repo, shell):
    again = f'p=$PATH; . \'{repo}/env/activate\'; [ "$p" = "$PATH" ] && deactivate && {ECHO}'
    out, _ = source(repo, shell, then=again)
    assert out.startswith("code=0") and f"{repo}/env/venv" not in out


@pytest.mark.parametrize(
    ("changed", "calls"),
    [
        ("tt_torch/config.py", 0),
        ("tt_torch/runtime.cpp", 1),
        ("CMakeLists.txt", 1),
        ("env/requirements.txt", 4),
    ],
)
def test_a_change_redoes_only_its_part(repo, changed, calls):
    source(repo)
    pip_calls(repo)
    with (repo / changed).open("a") as file:
        file.write("\n# changed")
    assert source(repo)[0].startswith("code=0")
    assert pip_calls(repo) == calls


def test_other_options_of_cmake_build_again(repo):
    source(repo)
    pip_calls(repo)
    for options in {"CMAKE_ARGS": "-DCMAKE_BUILD_TYPE=Debug"}, {"CMAKE_BUILD_TYPE": "Debug"}, {}:
        source(repo, **options)
        assert pip_calls(repo) == 1
        source(repo, **options)
        assert pip_calls(repo) == 0


def test_a_moved_repository_gets_a_new_venv(repo):
    source(repo)
    moved = repo.rename(repo.parent / "moved")
    out, _ = source(moved)
    assert out == f"code=0 home={moved} python={moved}/env/venv/bin/python"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_failure_is_reported_and_leaves_no_venv(repo, shell):
    out, err = source(repo, shell, FAIL="torch==")
    assert out.startswith("code=1 home= ")
    assert "no such package" in err
    assert err.splitlines()[-1].startswith("tt-torch: failed: installing PyTorch")
    assert not (repo / "env/venv").exists()
    assert source(repo, shell)[0].startswith("code=0")


def test_failed_build_keeps_the_dependencies(repo):
    source(repo)
    (repo / "tt_torch/runtime.cpp").write_text("second")
    assert source(repo, FAIL="--editable")[0].startswith("code=1")
    pip_calls(repo)
    assert source(repo)[0].startswith("code=0")
    assert pip_calls(repo) == 1


def test_packages_are_installed_while_the_compiler_runs(repo):
    out, err = source(repo, MEET="1")
    assert out.startswith("code=0"), err


def test_a_failure_ends_what_runs_beside_it(repo):
    begin = time.perf_counter()
    out, err = source(repo, FAIL=" -r ", SLOW_BUILD="60")
    assert out.startswith("code=1") and time.perf_counter() - begin < 30
    assert "failed: installing the other" in err and "stopped: building the C++ libraries" in err
    assert not (repo / "env/venv").exists()


def wait_for_pip(repo):
    deadline = time.monotonic() + 30
    while not (repo.parent / "calls").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interruption_leaves_no_venv_and_no_process(repo, name):
    process = start(repo, SLOW="60")
    wait_for_pip(repo)
    os.killpg(process.pid, signal.Signals[name])
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while (repo / "env/venv").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not (repo / "env/venv").exists()
    assert source(repo)[0].startswith("code=0")  # a process that still held the lock would delay this by a minute


def test_a_venv_without_its_stamp_is_made_again(repo):
    half_made = repo / "env/venv/lib/half-made"
    half_made.mkdir(parents=True)
    assert source(repo)[0].startswith("code=0")
    assert not half_made.exists()


NEEDED = "python3.11 python3.11-venv python3.11-dev g++ libflatbuffers-dev nlohmann-json3-dev libssl-dev"
NAKED_TOOLS = "bash cat chmod cp dirname env find grep head mv rm sed sh sha256sum sleep sort tail tr uname xargs"


def naked_machine(repo):
    """A folder for PATH without Python, compiler or package manager. Its `id` says that the user is root."""
    tools = repo.parent / "tools"
    tool(tools, "id", "#!/bin/sh\necho 0\n")
    for name in NAKED_TOOLS.split():
        (tools / name).symlink_to(shutil.which(name))
    return tools


def test_missing_system_packages_are_named(repo):
    out, err = source(repo, then='echo "code=$?"', PATH=str(naked_machine(repo)))
    assert out == "code=1"
    assert err == f"tt-torch: these packages are missing (by their Debian names), install them first: {NEEDED}"


def test_missing_system_packages_are_installed(repo):
    tools = naked_machine(repo)
    tool(tools, "apt-get", f'#!/bin/sh\necho "$*" >> {tools}/apt\ncp {repo.parent}/bin/[pc]* {tools}\n')
    out, err = source(repo, PATH=str(tools))
    assert out.startswith("code=0"), err
    assert (tools / "apt").read_text().splitlines()[-1] == f"install -y --no-install-recommends {NEEDED}"


def test_requirements_agree_with_pyproject():
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    locked = (REPO / "env/requirements.txt").read_text().replace("_", "-").lower().splitlines()
    wanted = [line for lines in (project["dependencies"], *extras.values()) for line in lines if "==" in line]
    assert {re.sub(r"\[.*?\]", "", line) for line in wanted} <= set(locked)

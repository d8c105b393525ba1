"""An item that crashes, hangs or takes too much memory fails alone; the other items are not affected."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tt_torch.workers.engine import Item, Limits, Worker, note, run


def double(value):
    return {"verdict": "match", "value": 2 * value}


def misbehave(how):
    if how == "hang":
        time.sleep(600)
    if how == "exit":
        os._exit(3)
    if how == "signal":
        note(depth="TTIR")
        note(depth="TTNN_IR")
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"value": len(bytes(10 << 30))}  # takes more memory than the limit


def killed(who, log):
    """Kills its own process, or the fork server, in the first run. With "always", it does this in each run."""
    with Path(log).open("a+") as file:
        file.write("run\n")
        if file.tell() == len("run\n") or who == "always":
            file.flush()
            os.kill(os.getppid() if who == "server" else os.getpid(), signal.SIGKILL)
            time.sleep(600)
    return {"verdict": "match"}


def meet(mine, other):
    Path(mine).touch()
    while not Path(other).exists():
        time.sleep(0.01)
    return {"verdict": "match"}


def sweep(items, seconds=60.0):
    return {item.key: record for item, record in run(items, 1, Limits(seconds=seconds))}


def item(key, function, **arguments):
    return Item(key, f"{__name__}:{function.__name__}", arguments)


def test_each_item_has_its_record():
    records = sweep([item(str(i), double, value=i) for i in range(5)])
    assert {key: record["value"] for key, record in records.items()} == {str(i): 2 * i for i in range(5)}


def test_a_dead_worker_is_replaced_and_its_stderr_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in run([item("a", double, value=1)], 1, Limits(seconds=60.0)):
        assert not list(tmp_path.glob("tt_torch*"))  # a killed sweep leaves no file with what its workers said
    records = sweep([item("a", misbehave, how="signal"), item("b", misbehave, how="exit"), item("c", double, value=1)])
    assert records["a"] == {"depth": "TTNN_IR", "verdict": "crash", "error": "SIGSEGV", "message": "last words"}
    assert records["b"]["error"] == "exit status 3"
    assert records["c"]["value"] == 2


def test_a_killed_item_is_run_again_once(tmp_path):
    whose = ("worker", "server", "always")
    records = sweep([item(who, killed, who=who, log=str(tmp_path / who)) for who in whose])
    assert records["worker"] == records["server"] == {"verdict": "match"}
    assert (records["always"]["verdict"], records["always"]["error"]) == ("crash", "SIGKILL")
    assert {who: (tmp_path / who).read_text().count("run") for who in whose} == dict.fromkeys(whose, 2)


@pytest.mark.parametrize("stopped", [True, False])
def test_a_worker_killed_before_it_reads_its_item_is_replaced(stopped):
    """A stopped worker dies when the item is in its pipe. A worker that is not stopped dies before the item is sent."""
    worker = Worker([], Limits())
    try:
        assert worker.run(item("a", double, value=1))["value"] == 2
        os.kill(worker.process.pid, signal.SIGSTOP if stopped else signal.SIGKILL)
        if not stopped:
            worker.process.join()
        worker.start(item("b", double, value=2))
        if stopped:
            worker.process.kill()
        while (record := worker.poll()) is None:
            time.sleep(0.01)
        assert record["value"] == 4
    finally:
        worker.stop()


def test_a_hanging_item_is_ended():
    records = sweep([item("a", misbehave, how="hang"), item("b", double, value=1)], seconds=1.0)
    assert records["a"]["verdict"] == "timeout"
    assert records["b"]["value"] == 2


def test_imports_do_not_count_against_the_time_of_an_item(tmp_path, monkeypatch):
    """The fork server runs already, so the worker imports the modules itself."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(1.2)\ndef work(): return {'verdict': 'match'}\n")
    (tmp_path / "dying_module.py").write_text("import os\nos._exit(3)\n")
    assert sweep([Item("a", "slow_module:work", {})], seconds=1.0) == {"a": {"verdict": "match"}}
    assert sweep([Item("a", "dying_module:work", {})])["a"]["error"] == "exit status 3"
    assert sweep([Item("a", "absent_module:work", {})])["a"]["error"] == "ModuleNotFoundError"


def test_memory_is_limited():
    records = sweep([item("a", misbehave, how="memory"), item("b", double, value=1)])
    assert (records["a"]["verdict"], records["a"]["error"]) == ("error", "MemoryError")
    assert records["b"]["value"] == 2


def test_jobs_run_at_the_same_time(tmp_path):
    pair = [item(mine, meet, mine=str(tmp_path / mine), other=str(tmp_path / other)) for mine, other in ("ab", "ba")]
    records = {i.key: record for i, record in run(pair, 2, Limits(seconds=60.0))}
    assert [record["verdict"] for record in records.values()] == ["match", "match"]

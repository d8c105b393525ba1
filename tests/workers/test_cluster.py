"""A sweep on a Ray cluster of two nodes, both on this machine."""

from __future__ import annotations

import pytest

from tests.workers.test_engine import item, meet, misbehave
from tt_torch.workers.engine import Limits

ray = pytest.importorskip("ray")


@pytest.fixture
def address():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


@pytest.mark.slow
def test_both_nodes_work_and_a_crash_costs_one_item(address, tmp_path):
    from tt_torch.workers.cluster import run

    pair = [item(mine, meet, mine=str(tmp_path / mine), other=str(tmp_path / other)) for mine, other in ("ab", "ba")]
    outcomes = run([*pair, item("crash", misbehave, how="signal")], address, Limits(seconds=120.0))
    records = {done.key: record for done, record in outcomes}
    assert (records["a"]["verdict"], records["b"]["verdict"]) == ("match", "match")
    assert records["a"]["node"] != records["b"]["node"]  # each node has one CPU, and the items waited for each other
    assert records["crash"]["error"] == "SIGSEGV"

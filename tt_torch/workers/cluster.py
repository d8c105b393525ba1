"""Runs items on a Ray cluster: Ray chooses the machine, and a worker of `engine` guards the item there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import ray
from ray.util import ActorPool

from tt_torch.workers.engine import Item, Limits, Outcome, Worker


class Lane:
    """A worker on some machine of the cluster, which runs one item at a time."""

    def __init__(self, modules: list[str], limits: Limits) -> None:
        self.worker = Worker(modules, limits)

    def run(self, item: Item) -> tuple[Item, Outcome]:
        return item, {**self.worker.run(item), "node": ray.get_runtime_context().get_node_id()}


def run(items: Iterable[Item], address: str, limits: Limits) -> Iterator[tuple[Item, Outcome]]:
    """Like `engine.run`, on all CPUs of the cluster at `address`. If a machine dies, its items run elsewhere.

    tt_torch must be installed on every machine. Records also have `node`, the id that Ray gave the machine.
    """
    waiting = list(items)
    modules = sorted({item.call.partition(":")[0] for item in waiting})
    ray.init(address=address, log_to_driver=False)
    try:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        lanes = min(len(waiting), int(resources.get("CPU", 1)))
        remote = ray.remote(Lane).options(num_cpus=1, max_restarts=-1, max_task_retries=-1)
        pool = ActorPool([remote.remote(modules, limits) for _ in range(lanes)])
        yield from pool.map_unordered(lambda lane, item: lane.run.remote(item), waiting)
    finally:
        ray.shutdown()

"""Records a trace on a mock device with two command queues, without the two calls that crash there.

A Python that has the `ttnn` package runs it.
"""

from __future__ import annotations

import sys

import numpy as np
import ttnn
from without_dispatch import crashing

sys.path.append(sys.argv[1])  # the folder that contains the package ttnn_worker
from ttnn_worker.execution import Execution

SOURCE = """
import ttnn
WEIGHTS = {}

def to_host_tensor(array, dtype, layout):
    raise AssertionError("no constants")

def forward(inputs, weights, device):
    [a, b] = inputs
    tiles = ttnn.to_layout(a, ttnn.TILE_LAYOUT)
    ttnn.deallocate(a, force=False)
    total = ttnn.add(tiles, b)
    ttnn.deallocate(tiles, force=False)
    return [ttnn.to_layout(total, ttnn.ROW_MAJOR_LAYOUT)]
"""
device = ttnn.open_mesh_device(ttnn.MeshShape(1, 1), num_command_queues=2, trace_region_size=1 << 20)
execution = Execution(device, enable_trace=True, queues=2)
facts = {
    "shape": [3, 40],
    "dtype": "ttnn.float32",
    "memory_config": "ttnn.DRAM_MEMORY_CONFIG",
    "sharding": (None, None),
}
inputs = [
    facts | {"name": "a", "layout": "ttnn.ROW_MAJOR_LAYOUT"},
    facts | {"name": "b", "layout": "ttnn.TILE_LAYOUT"},
]
execution.load(0, SOURCE, {}, inputs, [(None, None)], each=[], traceable=True)
execution.keep(1, inputs[1], np.ones((3, 40), np.float32))
for _ in range(3):
    (result,) = execution.run(0, [np.ones((3, 40), np.float32), 1])
    print(list(result.shape), execution.statistics()["traces"], len(crashing))
execution.close()
print("closed")

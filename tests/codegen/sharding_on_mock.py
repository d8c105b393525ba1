"""Splits arrays on a mock mesh and composes them again, in the Python of the `ttnn` package.

The arguments are the folder of ttnn_worker, and an .npz file with arrays. The parts of each chip are written to this
file. The name of an array ends with its data type and with its sharding: `3 bfloat16 None 1`.
"""

import sys

import numpy as np
import ttnn

sys.path.append(sys.argv[1])
from ttnn_worker.sharding import compose, distribute, to_array

device = ttnn.open_mesh_device(ttnn.MeshShape(2, 4))
found = {}
for name, array in np.load(sys.argv[2]).items():
    number, dtype, *dims = name.split()
    sharding = tuple(None if dim == "None" else int(dim) for dim in dims)
    for layout in (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT):
        tensor = distribute(ttnn.Tensor(array, getattr(ttnn, dtype)), sharding, device)
        tensor = tensor if layout == ttnn.ROW_MAJOR_LAYOUT else ttnn.to_layout(tensor, layout)
        for chip, part in enumerate(ttnn.get_device_tensors(tensor)):
            found[f"{name} {layout.name} {chip}"] = to_array(part)
        found[f"{name} {layout.name} whole"] = compose(tensor, sharding, device)
np.savez(sys.argv[2], **found)
ttnn.close_mesh_device(device)

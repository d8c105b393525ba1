"""The conversion of bfloat16 in NumPy agrees with PyTorch."""

import numpy as np
import torch

from tt_torch.wire import bfloat16


def test_all_values():
    bits = np.arange(1 << 16, dtype=np.uint16)  # infinities and every NaN are among them
    wanted = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    assert bfloat16.floats(bits).tobytes() == wanted.tobytes()
    assert np.array_equal(bfloat16.halves(wanted), bits)

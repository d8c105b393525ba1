"""Figures that Tenstorrent publishes for its own, hand-written programs: what was measured, on which card, and where it
stands. All are of the repository tt-metal.
"""

from __future__ import annotations

from typing import NamedTuple

# Matrix products of the library with configurations that it chooses, in DRAM, replayed: the share of the matrix unit's
# cycles that compute, in percent. tech_reports/GEMM_FLOPS/GEMM_FLOPS.md, commit 06bd3735, tables "Out of Box", column
# "Device Based Utilization". Sizes are (rows, inner, columns).
SIZES = {
    "n150": [
        (512, 512, 512), (512, 1024, 1024), (512, 1024, 2048), (1024, 1024, 1024), (1024, 1024, 2048),
        (1024, 2048, 2048), (2048, 2048, 2048), (2048, 2048, 3072), (2048, 3072, 3072), (3072, 3072, 3072),
        (3072, 3072, 4096), (3072, 4096, 4096), (4096, 4096, 4096),
    ],
    "p150": [
        (640, 832, 832), (640, 1664, 1664), (640, 1664, 3328), (1280, 1664, 1664), (1280, 1664, 3328),
        (1280, 3328, 3328), (2560, 3328, 3328), (2560, 3328, 4992), (2560, 4992, 4992), (3840, 4992, 4992),
        (3840, 4992, 6656), (3840, 6656, 6656), (5120, 6656, 6656),
    ],
}  # fmt: skip
UTILIZATION = {
    ("n150", "BFloat16", "HiFi2"):
        [17.82, 9.00, 16.70, 41.64, 56.61, 60.49, 66.74, 70.07, 71.30, 58.19, 60.97, 59.41, 59.46],
    ("n150", "BFP_BFloat8", "LoFi"):
        [11.28, 7.03, 13.13, 33.54, 45.07, 52.97, 63.73, 67.18, 69.28, 69.84, 71.69, 62.60, 64.35],
    ("n150", "BFP_BFloat4", "LoFi"):
        [14.47, 8.70, 17.28, 44.84, 55.64, 65.21, 73.89, 75.34, 77.88, 79.74, 80.73, 81.68, 82.24],
    ("p150", "BFloat16", "HiFi2"):
        [18.82, 41.08, 51.04, 61.85, 76.75, 81.07, 85.66, 86.55, 87.40, 80.25, 80.79, 79.98, 80.37],
    ("p150", "BFP_BFloat8", "LoFi"):
        [10.30, 25.19, 33.89, 43.72, 61.45, 71.22, 81.31, 82.96, 84.73, 86.41, 86.74, 80.84, 80.83],
    ("p150", "BFP_BFloat4", "LoFi"):
        [10.85, 27.51, 38.21, 50.65, 67.13, 76.38, 82.30, 83.96, 85.87, 87.42, 87.85, 88.62, 89.27],
}  # fmt: skip
# Two products take five times as long as their neighbours. This is so with every data type, and also by the clock of
# the host: the library chooses another configuration for them. The fit leaves them out, but the table has them.
ODD = {("n150", (512, 1024, 1024)), ("n150", (512, 1024, 2048))}


class Rate(NamedTuple):
    """Images, sentences or tokens of one user per second."""

    model: str
    card: str
    batch: int
    rate: float
    unit: str
    source: str


_MODELS = "models/README.md, 3 Nov 2025"
_DEVICE = "resnet50/blackhole/tests/test_perf_device_resnet50.py, 22f21522"
RATES = [
    Rate("resnet50", "n150", 16, 4700, "images", _MODELS),
    Rate("resnet50", "p150", 16, 12600, "images", _MODELS),
    Rate("resnet50", "p150", 16, 10610, "images, kernels only", _DEVICE),
    Rate("vit-base", "n150", 8, 1370, "images", _MODELS),
    Rate("vit-base", "p150", 10, 3700, "images", _MODELS),
    Rate("bert-large", "n150", 8, 270, "sentences of 384", _MODELS),
    Rate("bert-base", "n150", 8, 433, "sentences of 384", _MODELS),
    Rate("bert-base", "p150", 8, 929, "sentences of 384", _MODELS),
]
# Tokens per second of one user, batch 1 after a prompt of 128: models/tt_transformers/PERF.md, commit 040a27c1. The
# second key is the data type of the weights.
TOKENS = {("n150", "bfp8"): 25.2, ("n150", "bfp4 gate, up"): 28.3, ("p150", "bfp4 gate, up"): 33.6}

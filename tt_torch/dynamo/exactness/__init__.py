"""Makes integer results exact, although the device's integers have 32 bits.

A program is exact on the device while its integer inputs are within limits, which interval analysis finds
(`analysis.py`). A call with other inputs runs in eager PyTorch. For example, `x * 3` is exact for x between -715827882
and 715827882. An op that no limit makes exact gets `meta["inexact"]` and runs on the host. int8 and int16 are
computed as int32; `mlir/stablehlo/normalize.py` wraps the results.
"""

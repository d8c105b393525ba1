"""Random and changed ops, for every kernel: each file is refused or runs, and none ends its process."""

from tests.runtime.fuzz_files import fuzz, kernels

PER_KERNEL = 12


def test_every_kernel_survives_random_files():
    names = kernels()
    outcomes, findings = fuzz(0, PER_KERNEL * len(names))
    assert findings == []
    assert sorted(outcomes) == names and len(names) > 80
    # Kernels that only mark or count something take any fields.
    careless = {"GetDeviceOp", "MemorySnapshotOp", "PrintOp", "NamedFullOp", "EmptyOp"}
    assert {name for name, counts in outcomes.items() if not counts["refused"]} <= careless

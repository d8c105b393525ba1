"""Headers and device descriptors agree with those of the reference compiler, tt-mlir."""

import pytest

from tt_torch.errors import ConfigError
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC
from wire.messages import REFERENCES

REFERENCE = {path.stem: path for path in REFERENCES}


def reference(name):
    return decode(REFERENCE[name].read_bytes())


def test_header_is_that_of_the_reference_compiler():
    """Only the version differs: the reference was built without git tags, so its version is 0.0.0."""
    theirs = reference("softmax")
    assert header() | {"version": theirs["version"]} == {key: theirs[key] for key in header()}


def test_default_descriptor_is_that_of_the_reference_compiler():
    assert reference("softmax")["system_desc"] == system_desc("wormhole_b0")


@pytest.mark.parametrize(("chips", "links"), [(1, []), (2, [(0, 1), (1, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])])
def test_chips_are_linked_in_a_ring(chips, links):
    desc = system_desc("blackhole", chips)
    assert [(c["device_id0"], c["device_id1"]) for c in desc["chip_channels"]] == links
    assert len(desc["chip_descs"]) == len(desc["chip_desc_indices"]) == chips


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_descriptor_files(arch):
    message = header(SYSTEM_DESC) | {"product_identifier": "unknown", "system_desc": system_desc(arch, 2)}
    assert decode(encode(message)) == message


@pytest.mark.parametrize(("arch", "chips"), [("grayskull", 1), ("wormhole_b0", 0)])
def test_unknown_machines(arch, chips):
    with pytest.raises(ConfigError):
        system_desc(arch, chips)

"""The system that programs are compiled for, as a `.ttsys` file."""

from __future__ import annotations

from typing import cast

from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import default_device
from tt_torch.wire.binary import header, system
from tt_torch.wire.messages import File
from tt_torch.wire.schema import SYSTEM_DESC


def system_file() -> File:
    """The message of a `.ttsys` file with the system that the environment variables choose.

    Raises ConfigError for variables that are not accepted. If they choose another device than the emulated one, it is
    opened, and this can raise errors, too.
    """
    config = CompilerConfig.from_env()
    if config.device != "emulated":
        default_device(config)
    found = system(config.arch, config.system_desc)
    return cast(File, header(SYSTEM_DESC) | {"system_desc": found})

"""Streams and events of the device. Their classes are PyTorch's own."""

from __future__ import annotations

import torch
from torch import Event, Stream

from tt_torch.device.chips import DeviceLike, index_of

__all__ = ["Event", "Stream", "current_stream", "set_stream", "stream", "synchronize"]


def synchronize(device: DeviceLike = None) -> None:
    """Waits until the device has done all of its work."""
    torch.accelerator.synchronize(index_of(device))


def current_stream(device: DeviceLike = None) -> Stream:
    """The current stream of a device; None means the current device."""
    return torch.accelerator.current_stream() if device is None else torch.accelerator.current_stream(index_of(device))


def set_stream(stream: Stream) -> None:
    """Makes a stream the current one of its chip."""
    torch.accelerator.set_stream(stream)


def stream(stream: Stream) -> Stream:
    """A context in which the stream is the current one."""
    return stream

"""Records a program on the device. Later calls only fill its inputs and replay it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ttnn

from .messages import Values
from .specification import Specification

PROGRAMS, WRITES = ttnn.QueueId(0), ttnn.QueueId(1)
Run = Callable[[list[ttnn.Tensor]], list[ttnn.Tensor]]  # a program, from all of its inputs to its results


class Trace:
    """A recording of the commands that `run(tensors)` sends to `device`.

    `run` must have run before, so that its kernels are loaded. `arguments` has, in the order of `inputs`, each tensor
    that is the same in all calls, and None for each input that every call brings. Inputs and results keep their places
    on the device until `release`. If `queues` is more than one, the second queue writes the inputs: after the previous
    replay, which may still read the old inputs, and before the next one.
    """

    def __init__(
        self,
        device: ttnn.MeshDevice,
        queues: int,
        run: Run,
        inputs: Sequence[Specification],
        arguments: Sequence[ttnn.Tensor | None],
    ) -> None:
        self._device, self._writes = device, WRITES if queues > 1 else PROGRAMS
        self._inputs = {i: (inputs[i], inputs[i].make(device)) for i, kept in enumerate(arguments) if kept is None}
        # Programs deallocate their inputs; memory that another tensor object shares is not freed then.
        tensors = [ttnn.Tensor(self._inputs[i][1]) if kept is None else kept for i, kept in enumerate(arguments)]
        self._number, self._outputs = self._record(run, tensors)
        self._replayed = self._event(PROGRAMS)

    def _record(self, run: Run, tensors: list[ttnn.Tensor]) -> tuple[ttnn.MeshTraceId, list[ttnn.Tensor]]:
        number = ttnn.begin_trace_capture(self._device, cq_id=PROGRAMS)
        try:
            try:
                outputs = run(tensors)
            finally:
                ttnn.end_trace_capture(self._device, number, cq_id=PROGRAMS)
        except BaseException:
            ttnn.release_trace(self._device, number)
            raise
        return number, outputs

    def replay(self, values: Sequence[Values]) -> list[ttnn.Tensor]:
        """Replays the program for the inputs of a call. Its results are on the device, valid until the next replay."""
        self._wait(self._writes, self._replayed)
        for (spec, tensor), value in zip(self._inputs.values(), values, strict=True):
            ttnn.copy_host_to_device_tensor(spec.on_host(value, self._device), tensor, cq_id=self._writes)
        self._wait(PROGRAMS, self._event(self._writes))
        ttnn.execute_trace(self._device, self._number, cq_id=PROGRAMS, blocking=False)
        self._replayed = self._event(PROGRAMS)
        return self._outputs

    def _event(self, queue: ttnn.QueueId) -> ttnn.MeshEvent | None:
        """An event after all commands that `queue` has got so far; None if all commands go through one queue."""
        return None if self._writes is PROGRAMS else ttnn.record_event(self._device, queue)

    def _wait(self, queue: ttnn.QueueId, event: ttnn.MeshEvent | None) -> None:
        if event is not None:
            ttnn.wait_for_event(queue, event)

    def release(self) -> None:
        ttnn.release_trace(self._device, self._number)

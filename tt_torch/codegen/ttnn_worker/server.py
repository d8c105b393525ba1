"""The worker. It answers each `(command, arguments)` of client.py by `("ok", result)` or `("error", text)`."""

from __future__ import annotations

import os
import shutil
from multiprocessing.connection import Connection

import numpy as np
import ttnn

from .channel import Channel
from .check import Prepared, check_function
from .execution import Execution
from .messages import Answer, Arguments, Checked, FunctionFacts, TensorFacts
from .refusal import explanation
from .specification import NAMES


class Worker:
    """Executes commands. A command is a method of this class, or a method of the Execution of the mesh's `part`."""

    def __init__(self) -> None:
        self._parts: dict[int, Execution] = {}  # 0 is the whole mesh
        self._fabric = False

    def ask(self, command: str, argument: Arguments | None = None) -> Answer:
        given = dict(argument or {})
        if not hasattr(type(self), command):
            return getattr(self._parts[given.pop("part", 0)], command)(**given)
        return getattr(self, command)(**given)

    def chips(self) -> int:
        return ttnn.get_num_devices()

    def open(
        self,
        mesh_shape: tuple[int, int] = (1, 1),
        program_cache: bool = True,
        enable_trace: bool = False,
        num_command_queues: int = 1,
        fabric: bool = False,
        **options: int | list[int],
    ) -> str:
        """Opens a mesh and returns its architecture. With `fabric`, a chip can exchange values with the chips in its
        row or column. Further options are passed to ttnn.open_mesh_device."""
        if fabric:
            ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
            self._fabric = True
        device = ttnn.open_mesh_device(ttnn.MeshShape(*mesh_shape), num_command_queues=num_command_queues, **options)
        if not program_cache:
            device.disable_and_clear_program_cache()
        self._parts[0] = Execution(device, enable_trace, num_command_queues)
        return device.arch().name.lower()

    def submesh(self, part: int, of: int, shape: list[int], offset: list[int]) -> None:
        whole = self._parts[of]
        device = whole.device.create_submesh(ttnn.MeshShape(*shape), ttnn.MeshCoordinate(*offset))
        self._parts[part] = Execution(device, whole.enable_trace, whole.queues)

    def close_part(self, part: int) -> None:
        self._parts.pop(part).close()

    def close(self) -> None:
        for part in sorted(self._parts, reverse=True):  # a part of a part has a higher number and is closed first
            self.close_part(part)
        if self._fabric:  # another mesh may be opened in this process
            ttnn.set_fabric_config(ttnn.FabricConfig.DISABLED)

    def check(self, functions: list[FunctionFacts], constants: dict[str, TensorFacts]) -> list[Checked]:
        prepared: Prepared = {}
        return [check_function(f, constants, prepared, self._parts[0].device) for f in functions]

    def pack(self, values: bytes, dtype: str) -> tuple[bytes, bytes]:
        """Packs a tile of float32 into another data type with the library, on the host.

        Returns the packed bytes, and the bytes of the float32 values that the library reads from them.
        """
        tile = np.frombuffer(values, np.float32).reshape(ttnn.TILE_SIZE, ttnn.TILE_SIZE).copy()  # writable
        tensor = ttnn.Tensor(tile, eval(dtype, NAMES), layout=ttnn.TILE_LAYOUT)
        shard = tensor.host_buffer().get_shard(ttnn.MeshCoordinate(0, 0))
        return np.from_dlpack(shard).tobytes(), tensor.to_numpy().astype(np.float32).tobytes()

    def echo(self, value: Answer) -> Answer:
        return value


def serve(socket: int, own: int, other: int) -> None:
    """Answers commands until the other end of the socket is closed, then removes the current folder.

    `own` and `other` are file descriptors of the memory in which this end and the other end write.
    """
    channel, worker = Channel(Connection(socket), own, other), Worker()
    while True:
        try:
            command, argument = channel.receive()
        except EOFError:  # the parent has ended, perhaps without removing the folder
            worker.close()
            return shutil.rmtree(os.getcwd(), ignore_errors=True)  # client.py made it for this process
        try:
            answer = "ok", worker.ask(command, argument)
        except Exception as error:
            answer = "error", explanation(error)
        channel.send(answer)

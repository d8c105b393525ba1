"""A process that compiles StableHLO with a PJRT plugin. It needs nothing but Python's standard library.

    python -I -S pjrt_worker.py LIBRARY PARENT FOLDER

It ends with the process PARENT, and removes FOLDER then. Each line of stdin is a request, a JSON object:

- `program`: the file of the module, as MLIR text,
- `systems`: the `.ttsys` files of the system to compile for, one per version of that file format. A plugin accepts only
  its own version, and does not tell which one this is. So they are tried one after the other,
- `options`: compile options of the plugin, as texts by name.

The answer is a line of stdout: `{"error": "..."}`, with an empty text if the program was compiled. The plugin writes
the binary and its IR to the folder that the option `export_path` names. What it prints goes to stderr.

The structs and functions below are those of the PJRT C API, pjrt_c_api.h of openxla/xla. Versions of it only append
fields, and each struct starts with its size, so older and newer plugins understand these. The fields of
CompileOptionsProto are those of compile_options.proto in the same project.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

Pointer, Size = ctypes.c_void_p, ctypes.c_size_t
FUNCTIONS_START = 5  # words of PJRT_Api before its functions: size, extensions, and the version in three words
ERROR_DESTROY, ERROR_MESSAGE, PLUGIN_INITIALIZE, CLIENT_CREATE, CLIENT_DESTROY, CLIENT_COMPILE = 0, 1, 3, 10, 11, 20
EXECUTABLE_DESTROY = 50
OTHER_SYSTEM = "system desc schema mismatch"  # the plugin's words for a descriptor of another version


class PluginError(Exception):
    """The plugin returned an error; `args[0]` is its message."""


class Arguments(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("extensions", Pointer)]

    def __init__(self, **values: object) -> None:
        super().__init__(ctypes.sizeof(self), None, **values)


class Error(Arguments):  # PJRT_Error_Destroy_Args, PJRT_Error_Message_Args
    _fields_ = [("error", Pointer), ("message", Pointer), ("message_size", Size)]


class Client(Arguments):  # PJRT_Client_Destroy_Args
    _fields_ = [("client", Pointer)]


class NewClient(Arguments):  # PJRT_Client_Create_Args
    _fields_ = [
        ("create_options", Pointer), ("num_options", Size),
        ("kv_get_callback", Pointer), ("kv_get_user_arg", Pointer),
        ("kv_put_callback", Pointer), ("kv_put_user_arg", Pointer), ("client", Pointer),
        ("kv_try_get_callback", Pointer), ("kv_try_get_user_arg", Pointer),
    ]  # fmt: skip


class Program(Arguments):  # PJRT_Program
    _fields_ = [("code", ctypes.c_char_p), ("code_size", Size), ("format", ctypes.c_char_p), ("format_size", Size)]


class Compilation(Arguments):  # PJRT_Client_Compile_Args
    _fields_ = [
        ("client", Pointer), ("program", ctypes.POINTER(Program)),
        ("compile_options", ctypes.c_char_p), ("compile_options_size", Size), ("executable", Pointer),
    ]  # fmt: skip


class Executable(Arguments):  # PJRT_LoadedExecutable_Destroy_Args
    _fields_ = [("executable", Pointer)]


class Plugin:
    """A loaded plugin. Raises OSError if the library cannot be loaded, and AttributeError if it is no PJRT plugin."""

    def __init__(self, library: str) -> None:
        get = ctypes.CDLL(library).GetPjrtApi
        get.restype = ctypes.POINTER(Pointer)
        self._api, self.accepted = get(), ""
        self._call(PLUGIN_INITIALIZE, Arguments())

    def _call(self, number: int, arguments: Arguments) -> None:
        function = ctypes.CFUNCTYPE(Pointer, Pointer)(self._api[FUNCTIONS_START + number])
        if failure := function(ctypes.addressof(arguments)):
            error = Error(error=failure)
            self._run(ERROR_MESSAGE, error)
            message = ctypes.string_at(error.message, error.message_size).decode(errors="replace")
            self._run(ERROR_DESTROY, error)
            raise PluginError(message)

    def _run(self, number: int, arguments: Arguments) -> None:
        """Calls one of the functions of errors, which return nothing."""
        ctypes.CFUNCTYPE(None, Pointer)(self._api[FUNCTIONS_START + number])(ctypes.addressof(arguments))

    def compile(self, code: bytes, system: str, options: Mapping[str, str]) -> None:
        """Compiles a module for the system of a `.ttsys` file. Raises PluginError if the plugin refuses one of them."""
        os.environ["TT_COMPILE_ONLY_SYSTEM_DESC"] = system  # read when the client is made
        client = NewClient()
        self._call(CLIENT_CREATE, client)
        try:
            program = Program(code=code, code_size=len(code), format=b"mlir", format_size=4)
            message = compile_options(options)
            compilation = Compilation(
                client=client.client,
                program=ctypes.pointer(program),
                compile_options=message,
                compile_options_size=len(message),
            )
            self._call(CLIENT_COMPILE, compilation)
            self._call(EXECUTABLE_DESTROY, Executable(executable=compilation.executable))
        finally:
            self._call(CLIENT_DESTROY, Client(client=client.client))


def compile_options(options: Mapping[str, str]) -> bytes:
    """CompileOptionsProto for one device, with the options as `env_option_overrides`."""
    device = _field(3, _field(1, b"\0"))  # DeviceAssignmentProto: computation_devices { replica_device_ids: 0 }
    assignment = _field(1, 1) + _field(2, 1) + device
    build = _field(4, 1) + _field(5, 1) + _field(9, assignment)  # ExecutableBuildOptionsProto: replicas, partitions
    overrides = [_field(1, name.encode()) + _field(2, _field(1, text.encode())) for name, text in options.items()]
    return _field(3, build) + b"".join(_field(7, override) for override in overrides)


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a message in the wire format of protocol buffers."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def answer(plugin: Plugin, program: str, systems: Sequence[str], options: Mapping[str, str]) -> str:
    """The error of a request, or an empty text. The version of `.ttsys` files that was accepted last is tried first."""
    code = Path(program).read_bytes()
    message = ""
    for system in sorted(systems, key=lambda file: Path(file).name != plugin.accepted):
        try:
            plugin.compile(code, system, options)
            message = ""
        except PluginError as error:
            message = str(error)
        if OTHER_SYSTEM not in message:
            plugin.accepted = Path(system).name
            break
    return message


def end_with(parent: int, folder: str) -> None:
    """Ends this process when its parent has ended, even in the middle of a compilation."""
    while os.getppid() == parent:
        time.sleep(0.5)
    end(folder)


def end(folder: str) -> None:
    """Ends this process. Its files are removed, because a parent that was killed cannot do it."""
    shutil.rmtree(folder, ignore_errors=True)  # the plugin may still write to it
    os._exit(0)


def main() -> None:
    library, parent, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    threading.Thread(target=end_with, args=(parent, folder), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the plugin prints to stdout, too
    plugin = Plugin(library)
    for line in sys.stdin:
        print(json.dumps({"error": answer(plugin, **json.loads(line))}), file=answers, flush=True)
    end(folder)  # the parent has closed the pipe


if __name__ == "__main__":
    main()

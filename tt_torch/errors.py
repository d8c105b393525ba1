"""Every exception that tt_torch raises on purpose. Each class builds its own message.

Two families matter to a reader: "your program or input is not supported" (`UnsupportedOpError`,
`ConfigError`, the input and binary errors) and "tt_torch has a bug" (`StageError`, `IRVerificationError`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from tt_torch.lazy import lazy

__getattr__ = lazy(__name__, {"DeviceMemoryError": "memory_error"})  # its file says why it is not here


def add_note(error: Exception, note: str) -> None:
    """Adds a line to what a traceback shows of an error. Python 3.10 has no notes: there, the note becomes a line of
    the message."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        error.args = (f"{error}\n{note}",)


class TTTorchError(Exception):
    """Base of all errors of this package."""


class ConfigError(TTTorchError, ValueError):
    """An option or environment variable has a value that it does not accept."""

    def __init__(self, option: str, got: object, accepted: str) -> None:
        super().__init__(f"{option}={got!r} is not accepted; it takes {accepted}")
        self.option, self.got, self.accepted = option, got, accepted


# --- compiling ------------------------------------------------------------------------------


class CompileError(TTTorchError):
    """The program could not be turned into a binary."""


class UnsupportedOpError(CompileError):
    """The program uses an op that a stage has no rule for."""

    def __init__(self, op: str, stage: str, location: str, detail: str = "") -> None:
        lines = [f"{op} is not supported in stage {stage}", f"  at {location}"]
        if detail:
            lines.append(f"  {detail}")
        lines.append("  rewrite the line with supported ops, or run it outside torch.compile")
        super().__init__("\n".join(lines))
        self.op, self.stage, self.location, self.detail = op, stage, location, detail


class OverrideError(CompileError, ValueError):
    """The option `optimizer_overrides` asks for something that an op does not have, or that does not fit."""

    def __init__(self, asked: str, op: str, location: str, reason: str) -> None:
        super().__init__(f"optimizer_overrides: {asked} cannot be followed for {op}: {reason}\n  at {location}")
        self.asked, self.op, self.location, self.reason = asked, op, location, reason


class NumberError(CompileError, ValueError):
    """An op got a number that its dtype does not have. Eager PyTorch refuses it, too, when it runs the op."""

    def __init__(self, op: str, location: str, number: float, dtype: object) -> None:
        super().__init__(f"{op} does not take {number!r} for {dtype}\n  at {location}")
        self.op, self.location, self.number, self.dtype = op, location, number, dtype


class GraphBreakError(CompileError):
    """Dynamo leaves a part of a function to Python, and the option `fallback` is "error"."""

    def __init__(self, location: str, reason: str) -> None:
        advice = "rewrite the line, take it out of torch.compile, or leave it to Python with fallback='host'"
        super().__init__(f"{reason}\n  at {location}\n  {advice}")
        self.location, self.reason = location, reason


class BucketError(CompileError):
    """A dimension that the option `buckets` names cannot be padded without changing results."""

    def __init__(self, op: str, location: str, reason: str) -> None:
        advice = "take the dimension out of the option buckets, or rewrite the line"
        super().__init__(f"{op} cannot be computed on padded sizes: {reason}\n  at {location}\n  {advice}")
        self.op, self.location, self.reason = op, location, reason


class DeviceMapError(TTTorchError, ValueError):
    """`device_map` does not say on which chip a part of the model runs."""

    def __init__(self, module: str, device_map: Mapping[str, int]) -> None:
        entries = ", ".join(map(repr, device_map))
        super().__init__(
            f"device_map has no entry for the module {module!r}, nor for one around it; its entries are {entries}. "
            'An entry for "" covers all other modules'
        )
        self.module = module


class IRVerificationError(CompileError):
    """An op breaks the rules of its level: a bug of the step that made it."""

    def __init__(self, op: str, location: str, problem: str) -> None:
        super().__init__(f"{op}: {problem}\n  at {location}")
        self.op, self.location, self.problem = op, location, problem


class StageError(CompileError):
    """A step of the pipeline failed on valid input: our bug, with a folder that repeats it."""

    def __init__(self, step: str, cause: BaseException, repro: str | None) -> None:
        where = f"\n  to repeat it, run: {repro}" if repro else ""
        super().__init__(f"step {step} failed: {type(cause).__name__}: {cause}{where}")
        self.step, self.cause, self.repro = step, cause, repro


class ExtensionError(TTTorchError, ValueError):
    """An op cannot get a lowering or a kernel."""

    def __init__(self, op: str, reason: str) -> None:
        super().__init__(f"{op} cannot be registered: {reason}")
        self.op, self.reason = op, reason


class LoweringError(TTTorchError):
    """A lowering that the user registered raised an exception, or returned something else than the op does.

    It is no CompileError, because the op would run on the host then, and the fault would stay unseen.
    """

    def __init__(self, op: str, location: str, problem: str) -> None:
        super().__init__(f"the lowering of {op} {problem}\n  at {location}")
        self.op, self.location, self.problem = op, location, problem


class OpArgumentError(TTTorchError, ValueError):
    """An op of `torch.ops.tt` got arguments that it does not take."""

    def __init__(self, op: str, location: str, got: str, accepted: str) -> None:
        super().__init__(f"{op} got {got}; it takes {accepted}" + (f"\n  at {location}" if location else ""))
        self.op, self.location, self.got, self.accepted = op, location, got, accepted


class PackagingError(CompileError):
    """A compiled model does something that a package cannot do."""


class OpByOpError(CompileError):
    """The option `check_all_ops_execute` is set, and an op-by-op run found ops that were not executed."""

    def __init__(self, ops: list[str], file: str) -> None:
        count = "1 op was" if len(ops) == 1 else f"{len(ops)} ops were"
        super().__init__("\n  ".join([f"{count} not executed; {file} has the reasons:", *ops]))
        self.ops, self.file = ops, file


# --- Tenstorrent's own library and compiler --------------------------------------------------


class EnvironmentMissingError(TTTorchError):
    """Something outside of this package is not installed; the message says what to do."""


class ExtraMissingError(EnvironmentMissingError):
    """An optional part of this package was asked for, and packages that it needs are not installed."""

    def __init__(self, extra: str, missing: Sequence[str]) -> None:
        are = "are" if len(missing) > 1 else "is"
        super().__init__(f"{', '.join(missing)} {are} not installed; run: pip install 'tt-torch[{extra}]'")
        self.extra, self.missing = extra, list(missing)


class NoCounterpartError(TTTorchError, NotImplementedError):
    """A name of tt-torch was used that has no meaning here; `instead` is a sentence about what to do."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(f"{name} has no counterpart here. {instead}")


class ToolchainMissingError(EnvironmentMissingError):
    """tt-mlir's own compiler was asked for, and is not installed."""

    def __init__(self) -> None:
        super().__init__(
            'compiler="tt-mlir" needs a PJRT plugin of tt-mlir, or its tools ttmlir-opt and ttmlir-translate. No '
            "installed package has such a plugin, TT_TORCH_PJRT_PLUGIN does not name one, and the tools are neither in "
            'TTMLIR_HOME nor on the PATH. docs/tt_mlir.md says what to install; or leave compiler at "tt-torch"'
        )


class WorkerError(TTTorchError):
    """The process that runs the `ttnn` package has died, hangs, or refuses a program."""


# --- running: raised by the C++ runtime under these names ------------------------------------


class BinaryFormatError(TTTorchError, ValueError):
    """The bytes are not a TTNN binary: truncated, damaged or of another format."""


class SchemaError(BinaryFormatError):
    """The binary was written for a schema for which there is no wire table."""


class UnsupportedBinaryError(TTTorchError):
    """The binary is valid, but uses ops or data types without a kernel; the message names all of them."""


class KernelMissingError(UnsupportedBinaryError):
    """A program has an op of the user whose kernel is not registered in this process."""


class PackageError(TTTorchError, ValueError):
    """A file is no package, is damaged, is of a newer version, or has no weights."""


class InputCountError(TTTorchError, TypeError):
    """A program was called with a wrong number of inputs."""


class OpNameError(TTTorchError, ValueError):
    """No op of a program has the name that was asked for."""

    def __init__(self, name: str, hint: str, known: Sequence[str]) -> None:
        some = f"{', '.join(known[:8])}{' and others' if len(known) > 8 else ''}"
        super().__init__(f"no op is named {name!r}{hint}; there are {some}" if known else f"there is no op {name!r}")
        self.name, self.known = name, known


class ModuleFormatError(TTTorchError, ValueError):
    """A file is not an MLIR module of the dialects that tt_torch knows."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the file is not an MLIR module of the known dialects: {cause}")


class ProfileFormatError(TTTorchError, ValueError):
    """A file is not what this version of `tt-torch profile`, or of `tt-torch verify`, wrote."""

    def __init__(self, path: object, cause: str, kind: str = "profile") -> None:
        super().__init__(f"{path} is not a {kind} of this version of tt-torch: {cause}; record it again")


class InputShapeError(TTTorchError, ValueError):
    """An input has another shape than the program expects."""


class ArgumentError(TTTorchError, TypeError):
    """A compiled model was called with other arguments than it was compiled for; the message names one of them."""


class ShardingError(TTTorchError, ValueError):
    """A tensor cannot be split over the chips of a mesh as it should be."""

    def __init__(self, shape: Sequence[int], reason: str) -> None:
        super().__init__(f"a tensor of shape {tuple(shape)} cannot be split over the mesh: {reason}")
        self.shape = tuple(shape)


class MeshError(TTTorchError, ValueError):
    """DTensors, an option or a call do not fit the mesh of chips."""


class HostError(TTTorchError, RuntimeError):
    """Another process that shares the mesh of chips has failed or ended, or does not answer."""


class InputDtypeError(TTTorchError, TypeError):
    """An input has a dtype that the program does not accept."""


class InexactError(TTTorchError, ArithmeticError):
    """The device would not compute the integers of a call exactly, and there is no eager PyTorch to do it."""


class DeviceError(TTTorchError):
    """A device could not be opened, or was used after it was closed."""


class AsyncError(TTTorchError, RuntimeError):
    """A program cannot run asynchronously, or something changed a value before an asynchronous call had read it."""

    def __init__(self, reason: str, advice: str = "compile it without async_mode") -> None:
        super().__init__(f"{reason}; {advice}")


class CollectiveError(TTTorchError):
    """Chips of one process cannot exchange, or combine, these tensors."""

    def __init__(
        self,
        what: str,
        advice: str = "it takes a DTensor, or a tensor with a value per chip as to_local() gives",
    ) -> None:
        super().__init__(f"{what}; {advice}")


class KernelError(TTTorchError):
    """An op failed while running; the message names the op, its location and the cause."""


class ReleasedWeightError(TTTorchError):
    """The values of a weight are needed, but the weight was released, and only the device has it."""


class ReleaseError(TTTorchError):
    """Weights cannot be released, because no device has their present values."""


class ExecutableBusyError(TTTorchError, RuntimeError):
    """An executable was called from inside its own callback."""


class TracingError(TTTorchError, RuntimeError):
    """`make_fx` or `torch.jit.trace` would record a call of a program, whose ops are no ops of PyTorch."""

    def __init__(self) -> None:
        super().__init__(
            "a compiled program cannot be traced, because its ops are no ops of PyTorch; trace the model itself"
        )


# --- serving --------------------------------------------------------------------------------


class ServingModelError(TTTorchError, NotImplementedError):
    """A model cannot be served, because its attention is of a kind that the pages of the cache do not serve."""

    def __init__(self, model: str, reason: str) -> None:
        accepted = "tt_torch.serving takes decoders with full attention in all layers"
        super().__init__(f"{model}: {reason}; {accepted}")
        self.model, self.reason = model, reason


class QueueFullError(TTTorchError):
    """An engine has as many unfinished requests as it accepts."""

    def __init__(self, limit: int, seconds: float | None) -> None:
        waited = f" for {seconds:g} s" if seconds else ""
        super().__init__(f"the engine has {limit} unfinished requests{waited}, its max_queue; send the request later")
        self.limit = limit


class RequestError(TTTorchError):
    """A request of an engine ended without its tokens, because it failed or the engine stopped."""

    def __init__(self, request: str, cause: object) -> None:
        super().__init__(f"request {request} failed: {cause}")
        self.request, self.cause = request, cause


# --- results --------------------------------------------------------------------------------


class ResultsFileError(TTTorchError, ValueError):
    """A file has no results of a sweep or a test run."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} has no results of a sweep, an op-by-op run or a test run: {cause}")
        self.path, self.cause = path, cause


class TensorFileError(TTTorchError, ValueError):
    """A file does not have the tensors that are expected, or cannot hold them."""

    def __init__(self, path: str, cause: object) -> None:
        super().__init__(f"{path}: {cause}")
        self.path, self.cause = path, cause


class ModelsFileError(TTTorchError, ValueError):
    """A Python file does not define the models of a sweep."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the models of {path} cannot be loaded: {cause}")
        self.path, self.cause = path, cause


class DatabaseError(TTTorchError):
    """The results database cannot be opened, read or written."""

    def __init__(self, url: str, cause: object) -> None:
        super().__init__(f"results database {url}: {' '.join(str(cause).split())}")
        self.url, self.cause = url, cause

"""Old names: `tt_torch.dynamo.executor`."""

from tt_torch.compat import refused
from tt_torch.driver.executor import Executor

__all__ = ["Executor", "OnnxExecutor", "OpByOpExecutor"]

OpByOpExecutor = refused(
    "tt_torch.dynamo.executor.OpByOpExecutor",
    "Compile with the depth COMPILE_OP_BY_OP or EXECUTE_OP_BY_OP: docs/bring_up.md.",
)
OnnxExecutor = refused(
    "tt_torch.dynamo.executor.OnnxExecutor",
    "The callable that tt_torch.onnx_compile.compile_onnx returns does its work.",
)

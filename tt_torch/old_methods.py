"""Methods of tt-torch's `CompilerConfig`. Programs for this package assign to the options, and need none of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tt_torch.compiler_options import CompileDepth
from tt_torch.errors import OpByOpError
from tt_torch.old_options import Config, OldNames
from tt_torch.records.lines import Record
from tt_torch.records.op_by_op import EXECUTED, LONGEST_TEXT, OpsFile, not_executed, told


class OldMethods(OldNames):
    """These methods, as a base class of `CompilerConfig`."""

    def set_compile_depth(self: Config, compile_depth: CompileDepth) -> None:
        """Assigns to `compile_depth`."""
        self.compile_depth = compile_depth

    def set_profile_ops(self: Config, profile_ops: bool) -> None:
        """Assigns to `profile_ops`."""
        self.profile_ops = profile_ops

    def set_torch_mlir_module(self: Config, mlir_module: str | None) -> None:
        """Assigns to `torch_mlir_module`."""
        self.torch_mlir_module = mlir_module

    def set_stablehlo_mlir_module(self: Config, mlir_module: str | None) -> None:
        """Assigns to `stablehlo_mlir_module`."""
        self.stablehlo_mlir_module = mlir_module

    def post_init(self: Config) -> None:
        """Has nothing to do. In tt-torch, it makes PyTorch's settings follow `consteval_parameters`. Here, each
        compilation makes its own settings."""

    def reset_unique_ops(self: Config) -> None:
        """Forgets the ops that were recorded."""
        self.unique_ops = {}
        self.outputs.graph_error = ""

    def truncate_op_dict_fields(self: Config, op_dict: Record) -> None:
        """Cuts long modules in the record of an op that was executed, unless `dump_info` is set."""
        if self.dump_info or op_dict.get("compilation_status") != EXECUTED:
            return
        for name, value in op_dict.items():
            if ("graph" in name or "json" in name) and isinstance(value, str) and len(value) > LONGEST_TEXT:
                op_dict[name] = f"{value[:LONGEST_TEXT]}... [truncated from {len(value)} chars]"

    def save_unique_ops(self: Config) -> None:
        """Writes `unique_ops` to the file of the model, as an op-by-op run does by itself at its end.

        Raises OpByOpError if `check_all_ops_execute` is set, and an op was not executed.
        """
        ops = {key: dict(record) for key, record in self.unique_ops.items()}
        for record in ops.values():
            self.truncate_op_dict_fields(record)
        path = OpsFile(self).save(ops, self.outputs.graph_error)
        print(told(ops, path), file=sys.stderr)
        if self.check_all_ops_execute and (missing := not_executed(ops.values())):
            raise OpByOpError(missing, str(path))

    def cleanup_old_files(self: Config) -> None:
        """Removes the files that `save_mlir` and `save_binary` have written for a model of this name.

        These are the files of the levels and in the folders that are set now. A model without a name has no files of
        its own.
        """
        if not self.model_name:
            return
        levels = "|".join(level.lower() for level in self.save_mlir)
        forms = [(self.output_mlir_dir, rf"_({levels})(_\w+)?\.mlir")] if levels else []
        forms += [(self.output_binary_dir, r"\.ttnn")] if self.save_binary else []
        for folder, ending in forms:
            for file in Path(folder).glob(f"{self.file_stem}_*"):
                if re.fullmatch(rf"{re.escape(self.file_stem)}_\d+{ending}", file.name):
                    file.unlink()

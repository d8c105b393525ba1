"""Every option of the compiler: name, default, environment variable and meaning in one table.

An option is declared once, as a field. Validation, the reading of environment variables and `docs/controlling.md` all
derive from that declaration.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum

from tt_torch import option_kinds as kinds
from tt_torch import overrides
from tt_torch.option_kinds import option


class CompileDepth(IntEnum):
    """How far a compilation goes. Below EXECUTE, the graph itself runs on the CPU, so results stay right."""

    TORCH_FX = 1
    STABLEHLO = 2
    TTNN_IR = 3
    COMPILE_OP_BY_OP = 4
    EXECUTE_OP_BY_OP = 5
    EXECUTE = 6


OP_BY_OP = (CompileDepth.COMPILE_OP_BY_OP, CompileDepth.EXECUTE_OP_BY_OP)


class OpByOpBackend(IntEnum):
    """The program that the op-by-op depths split into single ops."""

    TORCH = 1
    STABLEHLO = 2


# The options that `precision` has for parts of a model.
WEIGHT_DTYPE = kinds.choice(None, "bfp8_b", "bfp4_b")
MATH_FIDELITY = kinds.choice("lofi", "hifi2", "hifi3", "hifi4", "ttnn_default")
FP32_DEST_ACC_EN = kinds.boolean()
ACTIVATION_DTYPE = kinds.choice(None, "bfp8_b")
BY_LAYER = {
    "weight_dtype": WEIGHT_DTYPE,
    "activation_dtype": ACTIVATION_DTYPE,
    "math_fidelity": MATH_FIDELITY,
    "fp32_dest_acc_en": FP32_DEST_ACC_EN,
}


@dataclasses.dataclass
class CompilerOptions:
    """The table, as fields of CompilerConfig."""

    compile_depth: CompileDepth = option(  # noqa: RUF009 - a field, as the others
        kinds.enum(CompileDepth),
        CompileDepth.EXECUTE,
        "the last stage that runs. Before EXECUTE, the CPU computes the results. The op-by-op depths run each op by "
        "itself: [bring_up.md](bring_up.md)",
        "TT_TORCH_COMPILE_DEPTH",
    )
    enable_consteval: bool = option(
        kinds.boolean(), True, "compute values that depend only on weights once", "TT_TORCH_CONSTEVAL"
    )
    consteval_parameters: bool = option(
        kinds.boolean(),
        True,
        "whether `enable_consteval` covers values that depend on parameters and buffers; if not, it covers constants",
        "TT_TORCH_CONSTEVAL_PARAMETERS",
    )
    optimization_level: int = option(
        kinds.number(int, 0, "a whole number", 2),
        0,
        "how much the [optimizer](optimizer.md) decides: 0 nothing, 1 how products are computed, 2 also where tensors "
        "lie, which may be split over the cores' L1. The levels are those of tt-mlir",
        "TT_TORCH_OPTIMIZATION_LEVEL",
    )
    enable_optimizer: bool = option(kinds.boolean(), False, "the same as `optimization_level=2`", "TT_TORCH_OPTIMIZER")
    optimizer_overrides: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = option(
        overrides.KIND,
        (),
        "what the optimizer must choose for some ops, at levels 1 and 2. Keys are patterns of module paths, of names "
        "of parameters and of names in locations: [optimizer.md](optimizer.md#overrides)",
        "TT_TORCH_OPTIMIZER_OVERRIDES",
    )
    op_model: str = option(
        kinds.choice("rules", "ttnn"),
        "rules",
        "who tells the [optimizer](optimizer.md#the-library-as-op-model) which forms of an op there are, and how much "
        "L1 each takes: its own rules, or Tenstorrent's library on a mock device, which `tt-torch check --setup` "
        "installs",
        "TT_TORCH_OP_MODEL",
    )
    enable_dram_sharded_matmul: bool = option(
        kinds.boolean(),
        False,
        "let the optimizer of level 2 split the weights of products of at most 32 rows over the banks of DRAM, where "
        "it computes that this is faster: [optimizer.md](optimizer.md#weights-in-the-banks-of-dram)",
        "TT_TORCH_DRAM_SHARDED_MATMUL",
    )
    compare_weights: bool = option(
        kinds.boolean(),
        False,
        "compare every byte of the weights with what the device has at each call: [weights.md](weights.md)",
        "TT_TORCH_COMPARE_WEIGHTS",
    )
    dtype: str | None = option(
        kinds.choice(None, "bf16", "f32"),
        None,
        "compute type of float ops; None keeps the model's own",
        "TT_TORCH_DTYPE",
    )
    weight_dtype: str | None = option(
        WEIGHT_DTYPE,
        None,
        "device type of the weights of matrix products and of 1x1 convolutions",
        "TT_TORCH_WEIGHT_DTYPE",
    )
    activation_dtype: str | None = option(
        ACTIVATION_DTYPE,
        None,
        "device type of results of matrix products in bfloat16. The results of ops that follow have it, too. "
        "Values keep bfloat16 where the library lacks an op for block floats: "
        "[quantization.md](quantization.md#activations)",
        "TT_TORCH_ACTIVATION_DTYPE",
    )
    kv_cache_dtype: str | None = option(
        ACTIVATION_DTYPE,
        None,
        "device type of caches of keys and values in bfloat16, if the program updates them in place: "
        "[quantization.md](quantization.md#caches)",
        "TT_TORCH_KV_CACHE_DTYPE",
    )
    math_fidelity: str = option(
        MATH_FIDELITY,
        "hifi4",
        "how many of the four passes over the operands' bits the matrix unit makes: one (`lofi`) to four (`hifi4`). "
        "`ttnn_default` leaves this and `fp32_dest_acc_en` to the library. The names are those of tt-mlir",
        "TT_TORCH_MATH_FIDELITY",
    )
    fp32_dest_acc_en: bool = option(
        FP32_DEST_ACC_EN,
        True,
        "add up in float32 in the registers of the matrix unit; if not, in bfloat16",
        "TT_TORCH_FP32_DEST_ACC_EN",
    )
    precision: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = option(
        kinds.by_pattern(BY_LAYER),
        (),
        "the last four options for parts of the model: by patterns of module paths and parameter names. "
        "[quantization.md](quantization.md#per-layer)",
        "TT_TORCH_PRECISION",
    )
    fallback: str = option(
        kinds.choice("host", "error", "strict-dtype"),
        "host",
        "what happens to ops without an exact form on the device. `host` runs them in eager PyTorch and warns; "
        "`error` raises UnsupportedOpError, and GraphBreakError where Dynamo leaves code to Python; `strict-dtype` is "
        "like `host`, and also runs float64 and float16 on the host, which are computed in float32 otherwise",
        "TT_TORCH_FALLBACK",
    )
    buckets: tuple[tuple[str, tuple[int, ...]], ...] = option(
        kinds.buckets(),
        (),
        "sizes to which dynamic dimensions are padded; a dimension is named by an input and a number, as in `x.1`. "
        "Results are cropped",
        "TT_TORCH_BUCKETS",
    )
    device_map: tuple[tuple[str, int], ...] = option(
        kinds.device_map(),
        (),
        "the chips that run the ops of each module, by module path as in `named_modules()`: [stages.md](stages.md)",
    )
    arch: str = option(
        kinds.choice("wormhole_b0", "blackhole"),
        "wormhole_b0",
        "architecture to compile for and to emulate",
        "TT_TORCH_ARCH",
    )
    system_desc: str = option(
        kinds.text(),
        "",
        "a .ttsys file of the system to compile for; if empty, one chip of `arch`",
        "TT_TORCH_SYSTEM_DESC",
    )
    device: str = option(
        kinds.choice("emulated", "ttnn"),
        "emulated",
        "the device that runs programs: emulated, or by Tenstorrent's library: [ttnn_library.md](ttnn_library.md)",
        "TT_TORCH_DEVICE",
    )
    ttnn_python: str = option(
        kinds.text(),
        "",
        'the Python interpreter that has the `ttnn` package, for `device="ttnn"`; if empty, the running one',
        "TT_TORCH_TTNN_PYTHON",
    )
    device_timeout: float = option(
        kinds.number(float, 0.001, "seconds"),
        300.0,
        "time limit for an answer of the `ttnn` device; after that, the device counts as hanging",
        "TT_TORCH_DEVICE_TIMEOUT",
    )
    enable_trace: bool = option(
        kinds.boolean(),
        False,
        "record the device's commands once, and only replay them in later calls; binaries have this recording: "
        '[binary_format.md](binary_format.md#recordings). With `device="ttnn"`, the device makes it: '
        "[ttnn_library.md](ttnn_library.md)",
        "TT_TORCH_ENABLE_TRACE",
    )
    trace_region_size: int = option(
        kinds.number(int, 0, "bytes"),
        0,
        "device memory that is reserved for the recordings of `enable_trace`; with 0, the library finds memory itself",
        "TT_TORCH_TRACE_REGION_SIZE",
    )
    mesh_shape: tuple[int, int] = option(kinds.mesh(), (1, 1), "rows and columns of the mesh of a program")
    automatic_parallelization: bool = option(
        kinds.boolean(),
        False,
        "split the batch of a program without DTensors over the chips of `mesh_shape`: [many_chips.md](many_chips.md)",
    )
    schema: str = option(kinds.schema(), "f3606800", "schema hash of the binary format to write", "TT_TORCH_SCHEMA")
    compiler: str = option(
        kinds.choice("tt-torch", "tt-mlir"),
        "tt-torch",
        "the compiler of StableHLO: our own stages, or tt-mlir: [tt_mlir.md](tt_mlir.md)",
        "TT_TORCH_COMPILER",
    )
    pjrt_plugin: str = option(
        kinds.text(),
        "",
        'the library of a PJRT plugin, for `compiler="tt-mlir"`; if empty, that of an installed plugin, or else '
        "tt-mlir's command-line tools",
        "TT_TORCH_PJRT_PLUGIN",
    )
    tt_mlir_options: tuple[tuple[str, str], ...] = option(
        kinds.named_texts(),
        (),
        'further options of tt-mlir, for `compiler="tt-mlir"`, by the names that a PJRT plugin gives them. They win '
        "over other options",
        "TT_TORCH_TT_MLIR_OPTIONS",
    )
    tt_mlir_timeout: float = option(
        kinds.number(float, 0.001, "seconds"),
        600.0,
        'time limit of tt-mlir for a program, for `compiler="tt-mlir"`',
        "TT_TORCH_TT_MLIR_TIMEOUT",
    )
    cache_dir: str = option(
        kinds.text(),
        "",
        "folder of the compile cache: [compile_cache.md](compile_cache.md); if empty, "
        "`$XDG_CACHE_HOME/tt_torch/compile` or `~/.cache/tt_torch/compile`",
        "TT_TORCH_CACHE_DIR",
    )
    cache_size: int = option(
        kinds.number(int, 0, "bytes"),
        1 << 30,
        "the most bytes that the compile cache keeps; with 0, there is no cache",
        "TT_TORCH_CACHE_SIZE",
    )
    verify_ir: bool = option(
        kinds.boolean(), False, "verify the IR after every step, not only between levels", "TT_TORCH_VERIFY_IR"
    )
    ir_log_level: str | None = option(
        kinds.choice(None, "INFO", "DEBUG"),
        None,
        "print the IR to stderr: INFO after each level, DEBUG after each step",
        "TT_TORCH_IR_LOG_LEVEL",
    )
    save_mlir: tuple[str, ...] = option(
        kinds.subset("STABLEHLO", "TTIR", "TTNN"), (), "levels whose IR goes to `output_mlir_dir`", "TT_TORCH_SAVE_MLIR"
    )
    save_binary: bool = option(
        kinds.boolean(), False, "write each binary to `output_binary_dir`", "TT_TORCH_SAVE_BINARY"
    )
    profile_ops: bool = option(
        kinds.boolean(),
        True,
        "keep the text of the last module on the config: `torch_mlir_module`, `stablehlo_mlir_module`",
    )
    output_mlir_dir: str = option(kinds.folder(), "model_mlir", "folder of the saved IR")
    output_binary_dir: str = option(kinds.folder(), "model_flatbuffer", "folder of the saved binaries")
    model_name: str = option(
        kinds.text(),
        "",
        "name of the model in saved files and reports. A run replaces the results of a run with this name, and none "
        "if the name is empty",
    )
    repro_dir: str = option(
        kinds.folder(), "tt_torch_repro", "folder for the files that repeat a failing step", "TT_TORCH_REPRO_DIR"
    )

    op_by_op_backend: OpByOpBackend = option(  # noqa: RUF009 - a field, as the others
        kinds.enum(OpByOpBackend),
        OpByOpBackend.TORCH,
        "the program that the op-by-op depths split into ops",
        "TT_TORCH_OP_BY_OP_BACKEND",
    )
    single_op_timeout: float = option(
        kinds.number(float, 0.001, "seconds"),
        30.0,
        "time limit of each op of the op-by-op depths",
        "TT_TORCH_OP_TIMEOUT",
    )
    jobs: int = option(
        kinds.number(int, 0, "a whole number"),
        0,
        "number of worker processes of the op-by-op depths; with 0, one per core",
        "TT_TORCH_JOBS",
    )
    verify_op_by_op: bool = option(
        kinds.boolean(),
        True,
        "compare the results of each op that an op-by-op run executes with eager PyTorch",
        "TT_TORCH_VERIFY_OP_BY_OP",
    )
    run_global_op_idx: int | None = option(
        kinds.optional(kinds.number(int, 0, "a whole number")),
        None,
        "the one op that an op-by-op run compiles and executes, by its `global_op_idx`; with None, it takes all ops",
        "RUN_GLOBAL_OP_IDX",
    )
    check_all_ops_execute: bool = option(
        kinds.boolean(),
        False,
        "raise OpByOpError if an op-by-op run could not execute an op",
        "TT_TORCH_CHECK_ALL_OPS_EXECUTE",
    )
    enable_intermediate_verification: bool = option(
        kinds.boolean(),
        False,
        "compare each device op with eager PyTorch in the first call of each graph, and print a table",
        "TT_TORCH_VERIFY_INTERMEDIATES",
    )
    bisect: bool = option(
        kinds.boolean(),
        False,
        "if the results of a graph depart from eager PyTorch, or a step of the compiler fails on it, find the smallest "
        "part with this fault, and write it as a program to `repro_dir`",
        "TT_TORCH_BISECT",
    )
    required_pcc: float = option(
        kinds.number(float, -1, "a correlation", 1),
        0.99,
        "a lower correlation counts as wrong",
        "TT_TORCH_REQUIRED_PCC",
        "RTI_PCC_FAIL_THRESH",
    )
    profile: str = option(
        kinds.text(),
        "",
        "folder for a profile of all calls of this process; if empty, none is made",
        "TT_TORCH_PROFILE",
    )
    results_path: str = option(
        kinds.folder(),
        "results/models",
        "folder for op-by-op results and for tables of intermediates",
        "TT_TORCH_RESULTS_PATH",
    )
    model_group: str = option(kinds.text(), "", "group of the model in op-by-op results")

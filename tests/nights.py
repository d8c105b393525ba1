"""Which of many combinations a plain `pytest` runs. The nightly workflow runs the others."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Parameters = list[Any]

# Tests with many combinations, by file. Together, they take most of the suite's time. Each number says that a plain
# `pytest` runs one in so many combinations, and at least one. A name means all tests whose names begin with it.
ONE_IN = {
    "test_exact.py": {"test_row": 3},
    "test_fuzz_drawing.py": {"test_programs_agree_with_eager": 3},
    "test_jax_shardings.py": {"test_random_programs": 3},
    "codegen/test_conformance.py": {"test_layers": 3, "test_optimized": 2},
    "driver/test_checkpoints_on_meshes.py": {"test_a_loaded_model_is_split": 3},
    "driver/test_data_parallel.py": {"test_models_with_a_split_batch": 3},
    "driver/test_data_parallel_layers.py": {"test_a_plain_layer": 3, "test_a_distributed_layer": 3},
    "driver/test_overlaps.py": {"test_each_call_writes_to_its_own_places": 4},
    "driver/test_sharded_lookups.py": {"test_lookups": 3},
    "driver/test_sharded_ops.py": {"test_ops_along_dimensions_that_are_split": 3},
    "driver/test_sharded_random.py": {"test_attention_with_dropout": 3, "test_a_program_draws_what_one_chip_draws": 3},
    "driver/test_sharded_views.py": {"test_a_write_behind_a_graph_break": 3},
    "driver/test_sharded_writes.py": {"test_writes_in_place": 3},
    "driver/test_shards.py": {"test_random_programs_equal": 3, "test_gradients_of_losses": 3, "test_every_change": 2},
    "driver/test_stages.py": {"test_results_and_gradients_are_those_of_eager": 2},
    "driver/test_stages_on_meshes.py": {"test_training_with_": 2},
    "driver/test_strided_parts.py": {"test_joined_dimensions": 3},
    "driver/test_weights.py": {"test_weights_that_a_fused_step_changed_are_used": 3},
    "dynamo/test_backward_formulas.py": {"test_of_": 3},
    "dynamo/test_bucket_rules.py": {"test_": 3},
    "dynamo/test_complex_pairs.py": {"test_gradients": 3},
    "dynamo/test_complex_rules.py": {"test_ops": 3},
    "dynamo/test_hidden_keys.py": {"test_a_query_that_sees_no_key_gives_zero": 3},
    "dynamo/test_interpolation.py": {"test_no_op_looks_up_elements": 2},
    "dynamo/test_linalg_limits.py": {"test_the_largest_matrices": 3},
    "dynamo/test_numbers.py": {"test_places_among_edges": 3, "test_the_same_numbers_are_taken": 3},
    "dynamo/test_optimizers.py": {"test_steps": 3},
    "dynamo/test_own_parts.py": {"test_the_parts_of_random_functions": 3},
    "dynamo/test_random.py": {"test_distribution_and_seed": 3},
    "dynamo/test_repeated_elements.py": {"test_a_write_reaches_each_element_once": 3},
    "dynamo/test_rounding.py": {"test_": 3},
    "dynamo/test_strided_views.py": {"test_they_are_the_places_of_eager": 3},
    "mlir/test_fused_decoders.py": {
        **{"test_projections": 3, "test_gelus_with_tanh": 3, "test_rotations": 3},
        **{"test_heads_with_parts_beside_each_other": 3, "test_gates": 2},
    },
    "mlir/test_mesh_collectives.py": {"test_values": 3, "test_types": 3},
    "mlir/test_near_misses.py": {"test_results_stay": 3},
    "mlir/test_optimizer.py": {"test_the_runtime_applies_the_activation": 3},
    "mlir/test_overrides.py": {"test_random_overrides_of_models": 3},
    "fuzz_files/test_fuzz_files.py": {"test_nothing_is_found": 2},
    "models/test_gradients.py": {"test_gradients": 3},
    "models/test_models.py": {"test_resnet50_batch_8": 2},
    "tt_ops/test_tt_ops.py": {"test_fake_form_and_tracing": 3, "test_compiled": 3},
}


def at_night(names: Sequence[str]) -> set[str]:
    """Returns the names of the collected tests that a plain `pytest` leaves out by the table.

    A hash of the names decides which tests are left, so that these have different values of each parameter. A
    combination that is selected alone is run.
    """
    combinations = defaultdict[tuple[str, str, str], list[str]](list)
    for name in names:
        file, _, test = name.partition("::")
        known = ONE_IN.get(file.removeprefix("tests/"), {})
        if found := next((begin for begin in known if test.startswith(begin) and "[" in test), None):
            combinations[file, found, test.partition("[")[0]].append(name)
    left_out = set()
    for (file, begin, _), each in combinations.items():
        mixed = sorted(each, key=lambda name: zlib.crc32(name.encode()))
        left_out.update(mixed[-(-len(each) // ONE_IN[file.removeprefix("tests/")][begin]) :])
    return left_out


def seeds(often: int, count: int) -> Parameters:
    """Seeds of random programs: the first `often` of `count` run for each change."""
    return often_if(lambda seed: seed < often, ((seed,) for seed in range(count)))


def often_if(is_often: Callable[..., bool], combinations: Iterable[tuple[Any, ...]]) -> Parameters:
    """Combinations of arguments: those for which `is_often` holds run for each change."""
    return [pytest.param(*each, marks=() if is_often(*each) else pytest.mark.nightly) for each in combinations]

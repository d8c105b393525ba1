"""How DTensor splits ops for which it has no rule, or a wrong one, while this process has a mesh of chips.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch.distributed import config
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor import _api as _of_new_tensors  # 2.13.0: for new_of_a_mesh
from torch.distributed.tensor import _utils as _of_tensors  # 2.13.0: for PATCHES
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # 2.13.0: for _whole
from torch.distributed.tensor._op_schema import OpSchema, OutputSharding  # 2.13.0: for _of_a_whole_tensor
from torch.distributed.tensor._ops import _matrix_ops as _of_products  # 2.13.0: for PATCHES
from torch.distributed.tensor._ops import _view_ops as _of_views  # 2.13.0: for PATCHES
from torch.distributed.tensor._ops import utils as _of_rules  # 2.13.0: for PATCHES
from torch.distributed.tensor._ops._math_ops import _NormPartial  # 2.13.0: for PATCHES
from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # 2.13.0: for put_in
from torch.distributed.tensor.experimental import register_sharding
from torch.distributed.tensor.placement_types import Placement

from tt_torch.errors import CollectiveError, MeshError
from tt_torch.torch_private.marks import part_of_graphs
from tt_torch.torch_private.moved_views import after_write, of_moved
from tt_torch.torch_private.ops import OpOverload, is_random, schema, written
from tt_torch.torch_private.sharded_dims import WITHOUT_HANDLER, Sharding, scan, scans, select_gradient
from tt_torch.torch_private.sharded_lookups import is_masked, look_up
from tt_torch.torch_private.sharded_masks import has_mask, of_mask
from tt_torch.torch_private.sharded_norms import HANDLERS, local
from tt_torch.torch_private.sharded_random import new_of_a_mesh
from tt_torch.torch_private.sharded_sums import becomes_parts, makes_norms, write
from tt_torch.torch_private.sharded_wholes import may_be_whole, of_whole_tensors, refuse_size_of_values
from tt_torch.torch_private.sharded_writes import RESHAPES, apart, in_place, reshaped
from tt_torch.torch_private.tensors import without_modes
from tt_torch.torch_private.trees import tree_leaves

aten = torch.ops.aten
BATCH, HEADS, MEAN = 0, 1, 1
# Namespaces of ops that are about chips, so that they do something else with whole tensors.
OF_MESHES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "device_mesh", "tt_mesh")
ATTENTION = (
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
)
VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view_copy.default)
SQUEEZES = (aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
# PyTorch's rules divide by the number of elements that a chip has. The whole tensor's number would be right.
LOSS_GRADIENTS = [
    aten.mse_loss_backward.default,
    aten.smooth_l1_loss_backward.default,
    aten.huber_loss_backward.default,
    aten.soft_margin_loss_backward.default,
    aten.binary_cross_entropy_backward.default,
]


# 2.13.0: the dispatcher never moves arguments that are given by name, as the mask is. So attention has a handler.
def _attention(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[DTensor, ...]:
    """Attention, or its gradients. All tensors are split in the same way along batch or heads, or they are whole."""
    mesh = next(x.device_mesh for x in args if isinstance(x, DTensor))
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    placements = _of_attention(tensors, mesh)
    given = [local(x, mesh, placements) if isinstance(x, torch.Tensor) else x for x in args]
    mask = kwargs.get("attn_mask")
    if mask is not None:
        fits = [isinstance(p, Shard) and mask.dim() == 4 and mask.shape[p.dim] > 1 for p in placements]
        of_mask = [p if split else Replicate() for p, split in zip(placements, fits, strict=True)]
        kwargs = kwargs | {"attn_mask": local(mask, mesh, of_mask)}
    return tuple(DTensor.from_local(x, mesh, placements, run_check=False) for x in op(*given, **kwargs))


part_of_graphs(_attention)


def _of_attention(tensors: Sequence[torch.Tensor], mesh: DeviceMesh) -> list[Placement]:
    """For each dimension of the mesh, the dimension of the tensors that it splits. It splits the heads if a tensor is
    split along them. Otherwise it splits the batch if a tensor is split along the batch, or nothing.

    Parts of a tensor must have one size, for all tensors. Key and value may have fewer heads than the query.
    """
    found: list[Placement] = []
    for axis in range(mesh.ndim):
        for part in (Shard(HEADS), Shard(BATCH)):
            chips = math.prod(mesh.size(i) for i in (*(i for i, p in enumerate(found) if p == part), axis))
            asked = any(isinstance(x, DTensor) and x.placements[axis] == part for x in tensors)
            if asked and all(x.shape[part.dim] % chips == 0 for x in tensors):
                found.append(part)
                break
        else:
            found.append(Replicate())
    return found


def _loss_gradient(gradient: Any, x: Any, target: Any, *options: Any) -> list[Sharding]:
    """The ways to split: whole, or along any dimension if the reduction is no mean. `options` has the reduction, and
    may have a weight before it and numbers."""
    reduction = next((option for option in options if isinstance(option, int)), MEAN)
    tensors = [x, target, *(option for option in options if hasattr(option, "shape"))]
    rest = [None for option in options if not hasattr(option, "shape")]
    found: list[Sharding] = [([Replicate()], [Replicate()] * (1 + len(tensors)) + rest)]
    if reduction != MEAN and all(t.shape == x.shape for t in tensors):
        for dim in range(len(x.shape)):
            of_gradient = Shard(dim) if gradient.shape else Replicate()
            found.append(([Shard(dim)], [of_gradient, *[Shard(dim)] * len(tensors), *rest]))
    return found


def _loss_of_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN
) -> list[Sharding]:
    """The ways to split: whole, or along any dimension if there are no weights. The whole sum or mean is then the sum
    or the mean of the parts' results."""
    options = [None if option is None else Replicate() for option in (weight, pos_weight)]
    found: list[Sharding] = [([Replicate()], [Replicate(), Replicate(), *options, None])]
    if options == [None, None] and target.shape == x.shape:
        for dim in range(len(x.shape)):
            result = (Shard(dim), Partial("avg"), Partial("sum"))[reduction]
            found.append(([result], [Shard(dim), Shard(dim), None, None, None]))
    return found


# 2.13.0: without it an op for which PyTorch has no rule would be an error, as gradients of many ops are.
def _whole_without_rule(of: Any) -> Callable[..., Any]:
    """Computes ops without a rule with whole tensors. For an op in place, see `in_place` and `reshaped`.

    Changes of shape that the rules refuse are computed with whole tensors, too, if the op may copy. An example is the
    product of more than two dimensions in `nn.MultiheadAttention`, whose batch is not the first dimension and is split
    twice.
    """

    def _propagate_op_sharding_dispatch_slow_path(op_call: Any, args: Any, *given: Any) -> Any:
        if any(map(_is_plain, written(op_call, args[:1], {}))):
            raise MeshError(f"{op_call} writes a DTensor to a plain tensor; give that to distribute_tensor before")
        if op_call.overloadpacket in RESHAPES:
            return reshaped(op_call, args, given[0])
        if has_mask(op_call, args):
            return of_mask(op_call, args, given[0])
        refuse_size_of_values(op_call, given[0])
        if op_call in (*VIEWS, *SQUEEZES) and not args[0].numel():
            return _of_nothing(given[1].schema)
        if apart(op_call):
            return in_place(of, op_call, args, *given)
        try:
            made = of(op_call, args, *given)
            if op_call in VIEWS and not _has_equal_parts(made.output_spec):
                return _of_a_whole_tensor(given[1].schema)
            if isinstance(made, OutputSharding) and makes_norms(given[1].schema, made.redistribute_schema):
                return of_whole_tensors(op_call, args, given[0])
            return look_up(op_call, args, made) if is_masked(op_call, made) else made
        except NotImplementedError:
            if op_call.namespace in OF_MESHES:
                raise
            if not _takes_whole_tensors(op_call):
                return of_whole_tensors(op_call, args, given[0])
        except RuntimeError:
            made = _without_its_rule(op_call, args, given[0], given[1].schema)
            if made is None:
                raise
            return made
        register_sharding(op_call)(partial(_whole, len(schema(op_call).returns)))
        return of(op_call, args, *given)

    part_of_graphs(_propagate_op_sharding_dispatch_slow_path)
    return _propagate_op_sharding_dispatch_slow_path


def _without_its_rule(op: OpOverload, args: Any, kwargs: Any, asked: OpSchema) -> Any:
    """The sharding of an op whose rule fails, or its result. None for an op that may not be computed otherwise."""
    if op in (*VIEWS, *SQUEEZES, aten.unbind.int, aten.expand.default):
        try:
            return _of_a_whole_tensor(asked, most_chips=1)  # it needs no exchange, so the result stays a view
        except RuntimeError:
            return _of_a_whole_tensor(asked)
    if op is aten.bmm.default and _split_alike(asked):
        return _of_equal_parts(asked)
    if op is aten.transpose.int and not args[0].dim():
        return aten.alias.default(args[0])
    if op is aten.copy_.default and (0 in args[0].shape or becomes_parts(*args[:2])):
        return write(args[1], args[0])
    if op.namespace in OF_MESHES or not may_be_whole(op, args, kwargs):
        return None
    return of_whole_tensors(op, args, kwargs)


def _gathered(asked: OpSchema, most_chips: float = math.inf) -> OpSchema:
    """The op with its first argument whole along the axes of the mesh that have at most so many chips."""
    given, *rest = asked.args_schema
    assert isinstance(given, DTensorSpec)
    placements = tuple(Replicate() if given.mesh.size(i) <= most_chips else p for i, p in enumerate(given.placements))
    gathered = DTensorSpec(given.mesh, placements, tensor_meta=given.tensor_meta)
    return OpSchema(asked.op, (gathered, *rest), asked.kwargs_schema)


def _form(asked: OpSchema) -> torch.Tensor:
    """The result of an op of one DTensor, without values."""
    x, *rest = asked.args_schema
    assert isinstance(x, DTensorSpec) and x.tensor_meta
    with without_modes():
        return asked.op(torch.empty_strided(x.shape, x.stride, dtype=x.tensor_meta.dtype, device="meta"), *rest)


def _of_nothing(asked: OpSchema) -> OutputSharding:
    """A view without elements, which all chips have. PyTorch's rules for views search their dimensions without end, and
    those for `squeeze` drop dimensions of size 0."""
    whole, form = _gathered(asked), _form(asked)
    x = whole.args_schema[0]
    assert isinstance(x, DTensorSpec)
    meta = TensorMeta(form.shape, form.stride(), form.dtype)
    made = DTensorSpec(x.mesh, x.placements, tensor_meta=meta)
    return OutputSharding(made, redistribute_schema=whole, needs_redistribute=True)


def _of_a_whole_tensor(asked: OpSchema, most_chips: float = math.inf) -> OutputSharding:
    """The sharding of an op whose first argument is gathered before it, along axes that have at most so many chips."""
    whole = _gathered(asked, most_chips)
    rules = DTensor._op_dispatcher.sharding_propagator  # 2.13.0: without it these views would be errors
    made = rules.propagate_op_sharding_non_cached(whole)
    if made.needs_redistribute:  # the size of a view is that of a chip's part
        return made
    return OutputSharding(made.output_spec, redistribute_schema=whole, needs_redistribute=True)


def _has_equal_parts(spec: DTensorSpec) -> bool:
    """PyTorch's rule lets two axes of the mesh split a dimension that has only as many parts as one axis."""
    return _of_rules.is_tensor_evenly_shardable(spec.shape, spec)


def _split_alike(asked: OpSchema) -> bool:
    """Whether both operands are split in the same way, along dimension 0 only."""
    x, y = asked.args_schema
    assert isinstance(x, DTensorSpec) and isinstance(y, DTensorSpec)
    return x.placements == y.placements and all(p.is_replicate() or getattr(p, "dim", None) == 0 for p in x.placements)


def _of_equal_parts(asked: OpSchema) -> OutputSharding:
    """Each chip multiplies its matrices. PyTorch's rule fails if a batch and heads were split before they were joined,
    as in attention with dropout."""
    x, y = asked.args_schema
    assert isinstance(x, DTensorSpec) and isinstance(y, DTensorSpec) and x.tensor_meta
    shape = torch.Size([x.shape[0], x.shape[1], y.shape[2]])
    meta = TensorMeta(shape, (shape[1] * shape[2], shape[2], 1), x.tensor_meta.dtype)
    return OutputSharding(DTensorSpec(x.mesh, x.placements, tensor_meta=meta))


def _takes_whole_tensors(op: Any) -> bool:
    """Whether the dispatcher can gather the operands. It does not do this for tensors that are given by name."""
    tensors = [a for a in schema(op).arguments if "Tensor" in str(a.type)]
    others = [a.name for a in tensors if a.kwarg_only or "List" in str(a.type)]
    lists = [r for r in schema(op).returns if str(r.type) != "Tensor"]
    return not (schema(op).is_mutable or others or lists or is_random(op))


def _is_plain(x: object) -> bool:
    return isinstance(x, torch.Tensor) and not isinstance(x, DTensor)


def _whole(results: int, *args: Any, **named: Any) -> list[Sharding]:
    placements = [Replicate() if isinstance(x, DTensorSpec) else None for x in tree_leaves(args)]
    return [([Replicate()] * results, placements)]


def _refuse_random(op_call: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    advice = "draw before `distribute_tensor`"
    raise CollectiveError(f"{op_call} of a DTensor: all chips would draw the same numbers for different parts", advice)


# 2.13.0: without it each cost that a plan compares would be traced, with ops that compute the place of a chip: of 24 s
# in which a test compiled, these took 20. A cost depends on bytes and on the mesh, which all chips share.
def _cost(of: Callable[..., float]) -> Callable[..., float]:
    def redistribute_cost(current_spec: DTensorSpec, target_spec: DTensorSpec) -> float:
        with config.patch(compile_on_one_rank=False):
            return of(current_spec, target_spec)

    return redistribute_cost


# 2.13.0: without it a plan could give chips parts of several sizes, as of a sum over chips. A graph has one size.
def _evenly(of: Callable[..., bool]) -> Callable[..., bool]:
    def is_tensor_shardable(shape: Sequence[int], spec: DTensorSpec, *options: Any, **named: Any) -> bool:
        return of(shape, spec, *options, **named) and _of_rules.is_tensor_evenly_shardable(shape, spec)

    return is_tensor_shardable


# 2.13.0: without it an op that makes a view without elements inside, such as `isin` of nothing, would never end.
def _of_elements(of: Callable[..., Any]) -> Callable[..., Any]:
    def view_groups(from_size: Sequence[int], to_size: Sequence[int]) -> Any:
        if 0 in from_size:  # this error means to DTensor that an op has no rule
            raise NotImplementedError("views without elements have no rule")
        return of(from_size, to_size)

    return view_groups


# 2.13.0: without it the norm of a split tensor of float16 would be infinite if its square is larger than 65504.
def _in_float32(of: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def reduced(self: Placement, tensor: torch.Tensor, *where: Any) -> torch.Tensor:
        is_narrow = tensor.dtype in (torch.float16, torch.bfloat16)
        return of(self, tensor.float() if is_narrow else tensor, *where).to(tensor.dtype)

    return reduced


PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (_of_tensors, "redistribute_cost", _cost),
    (_of_rules, "redistribute_cost", _cost),
    (_of_rules, "is_tensor_shardable", _evenly),
    (_of_products, "is_tensor_shardable", _evenly),
    (_of_views, "view_groups", _of_elements),
    (_NormPartial, "_reduce_value", _in_float32),
    (_NormPartial, "_reduce_shard_value", _in_float32),
)


# 2.13.0: without it attention of tensors on the CPU would be planned without end, convolutions of split channels would
# fail, the gradients of means would be too large, and a plain tensor could not be combined with a DTensor.
def put_in() -> Callable[[], None]:
    """Gives DTensor these rules, and returns a function that takes them out again."""
    dispatcher = DTensor._op_dispatcher
    rules = dispatcher.sharding_propagator
    tables: list[dict[Any, Any]] = [
        dispatcher._custom_op_handlers,
        rules.op_strategy_funcs,
        rules.op_single_dim_strategy_funcs,
        rules.op_to_schema_info,
        rules.op_to_schema_info_for_single_dim_strategy,
    ]
    before = [dict(table) for table in tables]
    drawing = {op for table in tables for op in table if is_random(op)}
    _add_rules(dispatcher, drawing)
    dispatcher._allow_implicit_replication = True
    methods: dict[str, Callable[[Any], Any]] = {
        "_propagate_op_sharding_dispatch_slow_path": _whole_without_rule,
        "_dispatch_get_local_results_slow_path": of_moved,
        "_dispatch_fast_path_python_tail": after_write,
    }
    for name, wrapped in methods.items():
        setattr(dispatcher, name, wrapped(getattr(dispatcher, name)))
    make = _of_new_tensors._dtensor_init_helper
    _of_new_tensors._dtensor_init_helper = new_of_a_mesh  # type: ignore[assignment]
    _clear_sharding_prop_cache()

    def take_out() -> None:
        _of_new_tensors._dtensor_init_helper = make
        dispatcher._allow_implicit_replication = False
        for name in methods:
            delattr(dispatcher, name)
        for table, rows in zip(tables, before, strict=True):
            table.clear()
            table.update(rows)
        _clear_sharding_prop_cache()

    return take_out


# 2.13.0: see put_in.
def _add_rules(dispatcher: Any, drawing: Iterable[OpOverload]) -> None:
    """Changes the dispatcher's tables of handlers and rules. Ops that are `drawing` numbers, and have no handler here,
    become errors."""
    for op in (*CONVOLUTIONS, *WITHOUT_HANDLER):
        del dispatcher._custom_op_handlers[op]
    dispatcher._custom_op_handlers.update(
        dict.fromkeys(drawing, _refuse_random) | HANDLERS | dict.fromkeys(ATTENTION, _attention)
    )
    rules = dispatcher.sharding_propagator
    for op in LOSS_GRADIENTS:
        rules.op_single_dim_strategy_funcs.pop(op, None)
        rules.op_to_schema_info_for_single_dim_strategy.pop(op, None)
    register_sharding(scans(rules.op_strategy_funcs))(scan)
    register_sharding(aten.select_backward.default)(select_gradient)
    register_sharding(LOSS_GRADIENTS)(_loss_gradient)
    register_sharding(aten.binary_cross_entropy_with_logits.default)(_loss_of_logits)

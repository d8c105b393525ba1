"""Programs with Flax and Optax: layers and models in inference, their gradients, and steps of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx

Program = tuple[Any, ...]  # a function and its arguments


def _wave(*shape: int) -> Any:
    return jnp.sin(1 + 3 * jnp.arange(float(jnp.prod(jnp.array(shape))))).reshape(shape)


SEQUENCE, IMAGE, ROWS = _wave(2, 5, 8), _wave(2, 8, 8, 3), _wave(4, 8)
LABELS, TOKENS = jnp.array([0, 2, 1, 2]), jnp.array([[1, 4, 2, 0], [3, 3, 5, 1]])


def _layer(make: Callable[[nnx.Rngs], nnx.Module], *inputs: Any) -> Program:
    """A module of nnx. Its parameters are arguments of the function."""
    graph, state = nnx.split(make(nnx.Rngs(0)))
    return lambda state, *inputs: nnx.merge(graph, state)(*inputs), state, *inputs


def _gradient(make: Callable[[nnx.Rngs], nnx.Module], *inputs: Any) -> Program:
    """The gradients of all parameters."""
    graph, parameters, others = nnx.split(make(nnx.Rngs(0)), nnx.Param, ...)

    def loss(parameters: Any, others: Any, *inputs: Any) -> Any:
        return (nnx.merge(graph, parameters, others)(*inputs) ** 2).mean()

    return jax.grad(loss), parameters, others, *inputs


def _linen(module: linen.Module, *inputs: Any) -> Program:
    return module.apply, module.init(jax.random.key(0), *inputs), *inputs


def _linen_gradient(module: linen.Module, *inputs: Any) -> Program:
    run, variables, *_ = _linen(module, *inputs)
    return jax.grad(lambda variables, *inputs: (run(variables, *inputs) ** 2).mean()), variables, *inputs


class Network(nnx.Module):
    """A convolution, a norm, pooling and a classifier."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.convolution = nnx.Conv(3, 6, (3, 3), rngs=rngs)
        self.norm = nnx.GroupNorm(6, 2, rngs=rngs)
        self.head = nnx.Linear(96, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = nnx.max_pool(nnx.relu(self.norm(self.convolution(x))), (2, 2), (2, 2))
        return self.head(x.reshape(x.shape[0], -1))


class Block(nnx.Module):
    """A block of a transformer."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.first, self.second = nnx.LayerNorm(8, rngs=rngs), nnx.RMSNorm(8, rngs=rngs)
        self.wide, self.narrow = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 8, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.narrow(nnx.gelu(self.wide(self.second(x))))


class Perceptron(linen.Module):
    """Two layers of linen."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Dense(3)(linen.tanh(linen.Dense(6)(x)))


def _training(optimizer: optax.GradientTransformation) -> Program:
    """Two steps of training, and the loss of each."""
    module = Perceptron()
    params = module.init(jax.random.key(1), ROWS)

    def loss(params: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(module.apply(params, ROWS), LABELS).mean()

    def step(carried: Any, _: Any) -> Any:
        params, state = carried
        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return (optax.apply_updates(params, updates), state), value

    def train(params: Any) -> Any:
        (params, _), losses = jax.lax.scan(step, (params, optimizer.init(params)), None, length=2)
        return params, losses

    return train, params


def _normed_in_training() -> Program:
    """A batch norm of linen, which returns its new statistics."""
    module = linen.BatchNorm(use_running_average=False)
    return (
        (lambda variables, x: module.apply(variables, x, mutable=["batch_stats"])),
        module.init(jax.random.key(0), ROWS),
        ROWS,
    )


def _dropped() -> Program:
    module = linen.Dropout(0.4, deterministic=False)
    return (lambda x, key: module.apply({}, x, rngs={"dropout": key})), ROWS, jax.random.key(7)


# Each is made when its test runs: the initial parameters of all of them take JAX 20 seconds.
PROGRAMS: dict[str, Callable[[], Program]] = {
    "linear": lambda: _layer(lambda r: nnx.Linear(8, 3, rngs=r), ROWS),
    "linear general": lambda: _layer(lambda r: nnx.LinearGeneral((5, 8), (2, 3), axis=(1, 2), rngs=r), SEQUENCE),
    "einsum": lambda: _layer(lambda r: nnx.Einsum("nta,hab->nthb", (2, 8, 4), (2, 4), rngs=r), SEQUENCE),
    "embedding": lambda: _layer(lambda r: nnx.Embed(6, 4, rngs=r), TOKENS),
    "convolution": lambda: _layer(lambda r: nnx.Conv(3, 4, (3, 3), strides=2, rngs=r), IMAGE),
    "dilated convolution": lambda: _layer(
        lambda r: nnx.Conv(3, 4, (3, 3), kernel_dilation=2, padding="VALID", rngs=r), IMAGE
    ),
    "grouped convolution": lambda: _layer(lambda r: nnx.Conv(3, 6, (3, 3), feature_group_count=3, rngs=r), IMAGE),
    "convolution in one dimension": lambda: _layer(lambda r: nnx.Conv(8, 4, (3,), padding="CAUSAL", rngs=r), SEQUENCE),
    "transposed convolution": lambda: _layer(lambda r: nnx.ConvTranspose(3, 4, (3, 3), strides=(2, 2), rngs=r), IMAGE),
    "layer norm": lambda: _layer(lambda r: nnx.LayerNorm(8, rngs=r), SEQUENCE),
    "RMS norm": lambda: _layer(lambda r: nnx.RMSNorm(8, rngs=r), SEQUENCE),
    "group norm": lambda: _layer(lambda r: nnx.GroupNorm(8, 4, rngs=r), SEQUENCE),
    "instance norm": lambda: _layer(lambda r: nnx.InstanceNorm(3, rngs=r), IMAGE),
    "batch norm": lambda: _layer(lambda r: nnx.BatchNorm(8, use_running_average=True, rngs=r), ROWS),
    "batch norm in training": _normed_in_training,
    "dropout": _dropped,
    "low rank": lambda: _layer(lambda r: nnx.LoRALinear(8, 3, lora_rank=2, rngs=r), ROWS),
    "attention": lambda: _layer(lambda r: nnx.MultiHeadAttention(2, 8, decode=False, rngs=r), SEQUENCE),
    "LSTM": lambda: _layer(lambda r: nnx.RNN(nnx.LSTMCell(8, 4, rngs=r)), SEQUENCE),
    "GRU": lambda: _layer(lambda r: nnx.RNN(nnx.GRUCell(8, 4, rngs=r)), SEQUENCE),
    "RNN backwards": lambda: _layer(lambda r: nnx.RNN(nnx.SimpleCell(8, 4, rngs=r), reverse=True), SEQUENCE),
    "average pool": lambda: (lambda x: nnx.avg_pool(x, (2, 2), (2, 2), padding="SAME"), IMAGE),
    "max pool": lambda: (lambda x: nnx.max_pool(x, (3, 3), (2, 2), padding="SAME"), IMAGE),
    "network": lambda: _layer(Network, IMAGE),
    "block": lambda: _layer(Block, SEQUENCE),
    "gradient of a network": lambda: _gradient(Network, IMAGE),
    "gradient of a block": lambda: _gradient(Block, SEQUENCE),
    "gradient of an LSTM": lambda: _linen_gradient(linen.RNN(linen.LSTMCell(4)), SEQUENCE),
    "gradient of an embedding": lambda: _gradient(lambda r: nnx.Embed(6, 4, rngs=r), TOKENS),
    "activations": lambda: (lambda x: (nnx.silu(x), nnx.elu(x), nnx.selu(x), nnx.softplus(x), nnx.glu(x)), ROWS),
    "linen perceptron": lambda: _linen(Perceptron(), ROWS),
    "linen convolution": lambda: _linen(linen.Conv(4, (3, 3)), IMAGE),
    "linen attention": lambda: _linen(linen.MultiHeadDotProductAttention(2), SEQUENCE, SEQUENCE),
    "linen GRU": lambda: _linen(linen.RNN(linen.GRUCell(4)), SEQUENCE),
    "linen weight norm": lambda: _linen(linen.WeightNorm(linen.Dense(3)), ROWS),
    "momentum": lambda: _training(optax.sgd(0.1, momentum=0.9)),
    "Adam": lambda: _training(optax.adam(0.01)),
    "AdamW with a schedule": lambda: _training(optax.adamw(optax.cosine_decay_schedule(0.01, 10))),
    "clipped gradients": lambda: _training(optax.chain(optax.clip_by_global_norm(0.1), optax.rmsprop(0.01))),
    "Lion": lambda: _training(optax.lion(0.01)),
}

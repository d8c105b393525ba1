"""`python -m tt_torch.serving MODEL ...` is `transformers serve MODEL ...` with continuous batching on the device.

It takes the arguments of `transformers serve`, and `--max-length`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import typer
from transformers import PreTrainedModel
from transformers.cli.serve import Serve
from transformers.cli.serving import model_manager

from tt_torch.serving.engine import checked
from tt_torch.serving.model import prepare


@contextmanager
def models_on_device(max_length: int) -> Iterator[None]:
    """A context in which a `Serve` of Transformers prepares each model that it loads."""

    class OnDevice(model_manager.ModelManager):
        def _load_model(self, *given: Any, **named: Any) -> PreTrainedModel:
            model = prepare(super()._load_model(*given, **named), max_length=max_length)
            return _refusing(model, max_length)

    with patch.object(model_manager, "ModelManager", OnDevice):
        yield


def _refusing(model: PreTrainedModel, max_length: int) -> PreTrainedModel:
    """The model, whose managers refuse a request that cannot run. Otherwise it would end the loop for all."""
    begin = model.init_continuous_batching

    def init_continuous_batching(*given: Any, **named: Any) -> Any:
        manager = begin(*given, **named)
        add = manager.add_request

        def add_request(input_ids: list[int], *others: Any, max_new_tokens: int | None = None, **options: Any) -> Any:
            new = max_new_tokens if max_new_tokens is not None else manager.generation_config.max_new_tokens
            blocks, size = manager.continuous_batching_config.num_blocks, manager.continuous_batching_config.page_size
            limit = min(max_length, blocks * size) if blocks else max_length
            tokens, new = checked(input_ids, new, limit, model)
            return add(tokens, *others, max_new_tokens=new, **options)

        manager.add_request = add_request
        return manager

    model.init_continuous_batching = init_continuous_batching
    return model


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tt_torch.serving", add_help=False, allow_abbrev=False)
    parser.add_argument("--max-length", type=int, required=True)
    own, others = parser.parse_known_args(arguments)
    app = typer.Typer(add_completion=False)
    app.command()(Serve)
    with models_on_device(own.max_length):
        app(["--continuous-batching", *others])


if __name__ == "__main__":
    main()

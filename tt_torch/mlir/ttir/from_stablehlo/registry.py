"""The rule set that the families of this folder fill, and the error for an op that none of them accepts."""

from functools import partial

from tt_torch.mlir import context
from tt_torch.mlir.rules import RuleSet

RULES = RuleSet("stablehlo-to-ttir")
unsupported = partial(context.unsupported, stage=RULES.name)

"""The rule set that the families of this folder fill."""

from tt_torch.mlir.rules import RuleSet

RULES = RuleSet("ttir-to-ttnn")

"""Graphs of which AOTAutograd would make a wrong graph: one row for each kind. Eager PyTorch runs these graphs."""

from __future__ import annotations

from torch.fx import GraphModule

from tt_torch.dynamo import input_forms, lost_gradients, repeated_elements, strided_places

_KINDS = (
    (input_forms.changes_form_of_input, input_forms),
    (lost_gradients.loses_gradients, lost_gradients),
    (repeated_elements.writes_to_repeated, repeated_elements),
    (strided_places.leaves_tensors, strided_places),
)


def reason_of(gm: GraphModule) -> tuple[str, str]:
    """Why the capture of a graph would be wrong, and what users can call instead. Both are empty if it is right."""
    return next(((kind.REASON, kind.INSTEAD) for is_wrong, kind in _KINDS if is_wrong(gm)), ("", ""))

"""The views by which AOTAutograd makes a result of a graph again from another result in the same memory.

In `h = x * 2; v = h.mT; return v, v.detach()`, the second result is made again from the first one, by the views that
made it from `h`. So it would be transposed twice, and silently wrong. The same happens to a view of a detached tensor
that has got gradients by a write. All backends make this error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from torch._C import _functionalization  # 2.13.0: for made_from_base
from torch._functorch._aot_autograd import collect_metadata_analysis  # 2.13.0: for views_from_bases
from torch._functorch._aot_autograd.functional_utils import ViewMetaSequence  # 2.13.0: for views_from_bases
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta  # 2.13.0: for made_from_base
from torch._subclasses.functional_tensor import FunctionalTensor  # 2.13.0: for views_from_bases

from tt_torch.torch_private.tensors import root_of

_OF_RESULTS = (
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
    OutputType.alias_of_intermediate_base_is_user_output,
)


class _FromBase(ViewMetaSequence):
    """The views of a functional tensor, and those of them that make it from its base."""

    def __init__(self, tensor: FunctionalTensor) -> None:
        super().__init__(tensor)
        # Without gradients, the base is another result, which has the same shape and strides.
        base: Any = root_of(tensor) if tensor.requires_grad else tensor
        before = _functionalization.get_view_meta_sequence(base.elem)
        known = len(before) <= len(self.sequence) and all(a is b for a, b in zip(before, self.sequence, strict=False))
        self.from_base = self.sequence[len(before) :] if known else None


# 2.13.0: without it a result would be made again by the views between another result and its memory, too.
@contextmanager
def views_from_bases() -> Iterator[None]:
    """While this context is active, AOTAutograd also notes which views make a result from its base."""
    with patch.object(collect_metadata_analysis, "ViewMetaSequence", _FromBase):
        yield


def made_from_base(metadata: ViewAndMutationMeta) -> None:
    """Lets the wrapper of a program make each result that is a view of another result by the views between them. If
    they are not known, it uses the shape, the strides and the offset."""
    for i, made in enumerate(metadata.output_info):
        views = made.view_meta_sequence
        if made.output_type in _OF_RESULTS and isinstance(views, _FromBase):
            if views.from_base is None:
                metadata.output_info[i] = replace(made, view_meta_sequence=None)
            else:
                views.sequence = views.from_base

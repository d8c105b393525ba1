"""The output of `tt-torch inspect` for a `.ttpkg` file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tt_torch.driver.arguments import TensorForm
from tt_torch.driver.package import contents
from tt_torch.driver.package.contents import Package, read
from tt_torch.driver.package.manifest import NAMES, OPEN, Json, Manifest, program_names, to_json
from tt_torch.flow import Branch, Flow, HostCall, Run
from tt_torch.tools import inspection


def text(path: Path) -> Iterator[str]:
    """The lines of the text form. Raises PackageError."""
    package = _whole(path)
    manifest, tensors, family = package.manifests[0], package.tensors, package.family
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    yield f"{path.name}: {path.stat().st_size:,} bytes, a package, written by {versions}"
    if family:
        yield f"\na family of {family.count} programs; shapes of arguments and results are those of the first one:"
        for place in family.dimensions:
            yield f"  dimension {place.dimension} of {place.argument}: {family.accepted(place)}"
    yield "\narguments:"
    for name, form in manifest.forms.items():
        yield f"  {name}: {_tensor(form) if isinstance(form, TensorForm) else form}"
    yield "\nresult:"
    yield from _result(manifest.result, manifest, "result")
    written = {manifest.inputs[i] for i in manifest.written}
    yield f"\nweights: {sum(tensors[n].nbytes for n in tensors if n.startswith('weight/')):,} bytes in the file"
    for name, weight in package.weights().items():
        also = "".join(f", also {alias}" for alias in weight.aliases)
        notes = also + ", changes at calls" * ((True, name) in written) + _trained(manifest, name)
        yield f"  {name}: {NAMES[weight.dtype]} {list(weight.shape)}{notes}"
    if manifest.flow:
        yield "\nflow: the host decides when each program runs; values have numbers, the arguments first"
        yield from _steps(manifest.flow, "  ")
    if package.second:
        size = sum(x.nbytes for x in package.second.tensors.values())
        yield f"\nsecond form: {size:,} bytes, for calls whose 64-bit integers leave 32 bits; the host computes these"
    for number, sizes in enumerate(family.members() if family else [{}]):
        manifest, prefix = package.member(number)
        for name in program_names(manifest):
            title = ", ".join([f"program {name}", *(f"{of} = {size}" for of, size in sizes.items())])
            yield ""
            yield from inspection.text(title, bytes(tensors[f"program/{prefix}{name}"].numpy()))


def _steps(flow: Flow, indent: str) -> Iterator[str]:
    """The steps of a flow. The steps of its loops and branches are further to the right."""
    count = flow.inputs
    for step in flow.steps:
        made, inner = list(range(count, count + step.results)), list[tuple[str, Flow]]()
        if isinstance(step, Run):
            does = f"program {step.program}"
        elif isinstance(step, HostCall):
            does = f"{step.op} on the host"
        elif isinstance(step, Branch):
            does, inner = "a branch", [(f"branch {i}", each) for i, each in enumerate(step.branches)]
        else:
            does = "a loop" if step.steps is None else f"a loop of {step.steps:,} steps"
            inner = [("while", step.condition)] if step.condition else []
            inner.append(("do", step.body))
        yield f"{indent}{made} = {does} of {step.inputs}"
        for name, each in inner:
            yield f"{indent}  {name}:"
            yield from _steps(each, f"{indent}    ")
        count += step.results
    yield f"{indent}results {flow.results}"


def as_json(path: Path) -> Json:
    """The manifest; for a family, the family and the manifests of its programs. Raises PackageError."""
    package = _whole(path)
    return contents.as_json(package) if package.family else to_json(package.manifests[0])


def _whole(path: Path) -> Package:
    """The package. All of its tensors are compared with their hashes."""
    package = read(path)
    return replace(package, tensors=dict(package.tensors))


def _trained(manifest: Manifest, name: str) -> str:
    """Says whether a weight is trained. The text is empty for a buffer, and in a package for inference."""
    parameters = manifest.training.parameters if manifest.training else {}
    return f", {'trained' if parameters[name] else 'frozen'}" if name in parameters else ""


def _tensor(form: TensorForm) -> str:
    return f"{NAMES[form.dtype]} {list(form.shape)} on {form.device}"


def _sizes(shape: Sequence[int]) -> str:
    """The shape of a result; `?` is a size that each call decides."""
    return f"[{', '.join('?' if size == OPEN else str(size) for size in shape)}]"


def _result(node: Json, manifest: Manifest, name: str) -> Iterator[str]:
    if "parts" not in node:
        kind, value = next(iter(node.items()))
        yield f"  {name}: {_sizes(manifest.places[value].shape) if kind == 'result' else f'{kind} {value}'}"
        return
    yield f"  {name}: {node.get('class') or node['container']}"
    for number, part in enumerate(node["parts"]):
        key = node["keys"][number] if node["keys"] else number
        yield from _result(part, manifest, f"{name}.{key}" if "class" in node else f"{name}[{key!r}]")

"""Each row of calls fits a signature of its function, as Tenstorrent's library states it in an error."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tt_torch.codegen import calls, environment
from tt_torch.mlir.ttnn import dialect  # noqa: F401  (declares the ops)

# Prints the error of each function for an argument that no function has.
ASK = """
import functools, json, sys
import ttnn
errors = {}
for name in json.loads(sys.argv[1]):
    try:
        functools.reduce(getattr, name.split(".")[1:], ttnn)(no_such_argument=object())
    except (TypeError, AttributeError) as error:
        errors[name] = str(error)
print(json.dumps(errors))
"""
# The library states no signature of these, and has no function for constants.
UNSTATED = {"ttnn.to_device", "ttnn.from_device", "ttnn.deallocate", "ttnn.global_avg_pool2d", "ttnn.constant"}
UNSTATED |= {"ttnn.copy_host_to_device_tensor"}
SIGNATURE = re.compile(r"^ +(?:\d+\. )?\w+\((?!no_such_argument)(.*?)\)(?: -> .*)?$", re.MULTILINE)


def signatures(functions: list[str]) -> dict[str, list[str]]:
    command = [environment.python_in(environment.default_folder()), "-c", ASK, json.dumps(functions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    errors = json.loads(done.stdout.splitlines()[-1])
    return {name: SIGNATURE.findall(errors[name]) for name in functions}


def parameters(signature: str) -> list[str]:
    """The text of each parameter. Commas inside of brackets do not separate parameters."""
    depth, found = 0, [""]
    for c in signature:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and not depth:
            found.append("")
        else:
            found[-1] += c
    return [text.strip().removeprefix("\\") for text in found]  # some have the asterisk as "\\*"


def fits(row: calls.Row, signature: str) -> bool:
    given = parameters(signature)
    positional = given[: given.index("*")] if "*" in given else given
    names = [text.partition(":")[0] for text in given if text != "*"]
    required = {text.partition(":")[0] for text in given if text != "*" and " = " not in text}
    plain = [a for a in row.arguments if not a.keyword]
    passed = names[: len(plain)] + [a.keyword for a in row.arguments if a.keyword]
    return len(plain) <= len(positional) and len(set(passed)) == len(passed) and required <= set(passed) <= set(names)


@pytest.mark.needs_ttnn
def test_each_row_fits_a_signature_of_its_function(ttnn_folder):
    rows = calls.rows()
    known = signatures(sorted({row.function for row in rows.values()}))
    assert {name for name, found in known.items() if not found} == UNSTATED
    stated = {key: row for key, row in rows.items() if row.function not in UNSTATED}
    assert {key: row for key, row in stated.items() if not any(fits(row, s) for s in known[row.function])} == {}

"""Files with one random op each, for every kernel: `python -m tests.runtime.fuzz_files --seed 1 --count 100000`.

Half of them have random fields, tensors and shapes of the op's table; the other half are rows of the kernel tests with
one to three values changed. Each is read by both readers, planned and run, in a child process: what kills the child is
written down, and the next child goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

from tests.runtime.programs import Maker, tensor_desc
from tests.wire.messages import Maker as Random
from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT, load

SHAPES = ((), (0,), (1,), (4,), (8,), (4, 4), (32, 32), (1, 2, 32, 16), (1, 1, 16, 8), (8, 8, 3, 3), (2, 3, 4, 4, 8))
DTYPES = ("Float32",) * 4 + ("BFloat16", "Int32", "UInt32", "UInt16", "UInt8", "BFP_BFloat8", "Bool", "Int64")
NUMBERS = (0, 1, 1, 2, 3, 4, 8, 16, 32, -1, 255, 20_000, 1 << 20, (1 << 31) - 1, (1 << 63) - 1, -(1 << 63))
FOLDER = Path(__file__).parent
SMALL = 1 << 18  # bytes of each bank: no file gets gigabytes
SLOW = 10.0  # seconds of the process


class Op(Random):
    """Random fields of an op, over a few inputs of the program."""

    def __init__(self, rng):
        super().__init__(load(), rng, density=0.9)
        self.maker = Maker()
        self.inputs = [self.tensor() for _ in range(4)]
        self.maker.program["inputs"] = self.inputs

    def tensor(self):
        buffer = self.rng.choice(("DRAM", "DRAM", "L1", "host"))
        return self.maker.tensor(self.rng.choice(SHAPES), self.rng.choice(DTYPES), buffer, self.rng.random() < 0.5)

    def table(self, name, vector_limit=5):
        if not name.endswith("TensorRef"):
            return super().table(name, vector_limit)
        return self.rng.choice(self.inputs) if self.rng.random() < 0.7 else self.tensor()

    def number(self, field, kind):
        if field.ref or kind in ("bool", "float", "double"):
            return super().number(field, kind)
        return fitting(self.rng.choice(NUMBERS), kind)


def fitting(number, kind):
    """The number, or its lowest bits, in an integer type of the schema."""
    bits = {"byte": 8, "ubyte": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32}.get(kind, 64)
    number %= 1 << bits
    return number - (1 << bits) if not kind.startswith("u") and number >> (bits - 1) else number


def random_op(name, rng):
    """A file with one op whose fields are random; its results are whatever its tensors are that are no inputs."""
    op = Op(rng)
    record = op.table(name)
    wanted = op.maker.op(name, **record)
    if rng.random() < 0.5:  # the next op reads what it makes
        wanted = op.maker.binary_op("Add", wanted or op.inputs[0], op.inputs[0], op.tensor())
    return op.maker.binary(*([wanted] if wanted else op.inputs[:1]))


def changed(data, rng):
    """A file with one to three values of its programs changed, wherever they are."""
    message = json.loads(json.dumps({k: v for k, v in decode(data).items() if k != "system_desc"}, default=list))
    for _ in range(rng.randint(1, 3)):
        change(message["programs"][0], rng)
    return encode(message)


def change(place, rng):
    while True:
        keys = [k for k in (place if isinstance(place, dict) else range(len(place))) if k not in ("name", "private")]
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.05:
            break
        place = place[key]
    value = place[key]
    if key == "shape" or (isinstance(value, dict) and "layout" in value):
        place[key] = list(rng.choice(SHAPES)) if key == "shape" else tensor_desc(rng.choice(SHAPES), rng.choice(DTYPES))
    elif isinstance(value, bool):
        place[key] = not value
    elif isinstance(value, int):
        place[key] = rng.choice((*NUMBERS[:11], value + 1, value - 1, value * 2))
    elif key == "data_type":
        place[key] = rng.choice(DTYPES)
    elif isinstance(place, dict) and rng.random() < 0.3:
        del place[key]


def kernels():
    """Every op that the runtime has a kernel for, but for machine code."""
    found = []
    for name in sorted(load(DEFAULT).enum("tt.target.ttnn.OpType").refs):
        maker = Maker()
        maker.op(name)
        try:
            Executable(Binary(maker.binary()))
        except TTTorchError as error:
            if "no kernel for" in str(error):
                continue
        found.append(name)
    return [name for name in found if name != "CpuOp"]


def rows():
    """Files of the kernel tests, by their ops."""
    sys.path.insert(0, str(FOLDER))  # which pytest does for the modules of a test's folder
    from test_kernels import ROWS, program

    found = {}
    for row in ROWS:
        found.setdefault(row.op, []).append(program(row, torch.float32, DEFAULT))
    return found


def made(number, names, files):
    """The file of a number, and the op that it is about; None in its place where a change makes no file."""
    rng = random.Random(number)
    name = names[number % len(names)]
    if name in files and rng.random() < 0.7:
        try:
            return name, changed(rng.choice(files[name]), rng)
        except ValueError:  # the encoder refuses what does not fit the schema
            return name, None
    return name, random_op(name, rng)


def try_file(data, device):
    """Whether a file runs. Every exception that is not one of ours is a finding."""
    if data is None:
        return "unencodable"
    start = time.process_time()
    try:
        decode(data)
        executable = Executable(Binary(data), 0, device)
        kinds = [torch.float32 if "Float" in s.dtype.name else torch.int32 for s in executable.inputs]
        values = [torch.ones((), dtype=k).expand(s.shape) for k, s in zip(kinds, executable.inputs, strict=True)]
        executable(values, [0])
        outcome = "ran"
    except TTTorchError:
        outcome = "refused"
    return "slow" if time.process_time() - start > SLOW else outcome


def child(first, last, progress):
    """Tries files of the numbers from `first` on; a line per file goes to `progress` before and after."""
    device = Device(dram_bank_size=SMALL, l1_bank_size=SMALL, host_memory_size=64 * SMALL)
    names, files = kernels(), rows()
    with open(progress, "ab", buffering=0) as log:
        for number in range(first, last):
            name, data = made(number, names, files)
            log.write(f"{number} {name} ".encode())
            try:
                outcome = try_file(data, device)
            except Exception as error:
                outcome = f"raised-{type(error).__name__}"
            log.write(f"{outcome}\n".encode())


def fuzz(seed, count):
    """Outcomes by op of `count` files from the number `seed * 10**9` on; "died" where one ended its process."""
    first = seed * 10**9
    last, outcomes, findings = first + count, {}, []
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        while first < last:
            progress.write_text("")
            numbers = map(str, (first, last, progress))
            command = [sys.executable, "-m", "tests.runtime.fuzz_files", "--child", *numbers]
            done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=FOLDER.parents[1])
            lines = [line.split() for line in progress.read_text().splitlines()]
            if not lines:
                raise RuntimeError(f"the child did not start: {done.stderr[-2000:]}")
            for number, name, outcome in ((*line, f"died-{done.returncode}")[:3] for line in lines):
                outcomes.setdefault(name, Counter())[outcome] += 1
                if outcome not in ("ran", "refused", "unencodable"):
                    findings.append((int(number), name, outcome))
            first = int(lines[-1][0]) + 1
    return outcomes, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(int(options.child[0]), int(options.child[1]), options.child[2])
    outcomes, findings = fuzz(options.seed, options.count)
    total = sum(outcomes.values(), Counter())
    print(f"{options.count} files of {len(outcomes)} kernels: {', '.join(f'{n} {o}' for o, n in total.most_common())}")
    for number, name, outcome in findings:
        print(f"finding: {name}, number {number}: {outcome}")
    return sys.exit(bool(findings))


if __name__ == "__main__":
    main()

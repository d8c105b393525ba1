"""The processes that share a mesh of chips, one per host, and what they send each other.

All of them run the same program. They go through the same steps, which `agree` and `step` compare. If a process does
something else, fails or ends, this is an error in all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from tt_torch.errors import HostError, MeshError
from tt_torch.torch_private.distributed import gloo_of
from tt_torch.torch_private.modes import without_modes

TIMEOUT = "TT_TORCH_HOST_TIMEOUT"  # the variable; without it, PyTorch's own timeout counts
_launched: list[tuple[Store, int, int]] = []  # the launcher's store, the number of this process, and how many there are
_meetings = itertools.count()  # a process may have one mesh after another; each has keys of its own in the store


class Hosts:
    """The processes that share a mesh: this one is number `rank` of `size`, and has the chips `own`.

    One thread at a time may exchange values.
    """

    def __init__(self, store: Store, rank: int, size: int, chips: int) -> None:
        self.rank, self.size, self.chips = rank, size, chips
        self.own = range(rank * chips // size, (rank + 1) * chips // size)
        self._gloo, self._lock = gloo_of(store, rank, size, _timeout()), threading.RLock()
        self._broken = ""  # why nothing can be exchanged any more

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """A context that all processes enter and leave together. An exception in one of them is a HostError in all
        others. They can go on after it. Raises MeshError if another process has another `what` at this point."""
        with self._lock, self._undisturbed():
            self.agree(what)
            try:
                yield
            except HostError:  # the others know
                raise
            except Exception as error:
                self._tell(error)
                raise
            self.agree(f"the end of {what}")

    def agree(self, what: str) -> None:
        """Waits for the other processes. Raises MeshError if one of them has another `what`, and HostError if one of
        them has failed or ended."""
        with self._undisturbed():
            self._meet(what, failed=False)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """A context in which an exception that is no `Exception`, such as that of Ctrl-C, ends all exchanges.

        It may come between any two statements. The processes then wait for different exchanges, and would read the
        bytes of one as those of another.
        """
        try:
            yield
        except Exception:
            raise
        except BaseException:
            self._broken = self._broken or "this process was interrupted in a step that it shares with others"
            self.close()
            raise

    def _tell(self, error: BaseException) -> None:
        """Lets the other processes raise a HostError for an error of this one."""
        with suppress(HostError):  # another process has failed, too; this one raises its own error
            self._meet(f"{type(error).__name__}: {error}", failed=True)

    def _meet(self, what: str, failed: bool) -> None:
        sent = torch.frombuffer(bytearray([failed]) + hashlib.sha256(what.encode()).digest(), dtype=torch.uint8)
        found = self._all(sent)
        if all(torch.equal(x, sent) for x in found) and not failed:
            return
        texts = self._texts(what)
        others = [rank for rank, x in enumerate(found) if x[0] and rank != self.rank]
        if others:
            raise HostError("; ".join(f"the process {rank} has failed: {texts[rank]}" for rank in others))
        if not failed:
            does = "; ".join(f"process {rank}: {text}" for rank, text in enumerate(texts))
            raise MeshError(f"the processes that share the mesh are not at the same place: {does}")

    def gather(self, own: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of all processes, which have one shape and dtype, as tensors on the CPU. The caller must be
        inside of a `step`. Raises HostError if another process has ended or does not answer."""
        with without_modes(), self._undisturbed():
            plain = own.detach().cpu().contiguous()
            found = self._all(plain.reshape(-1).view(torch.uint8)) if plain.numel() else [plain] * self.size
            return [x.view(plain.dtype).reshape(plain.shape) for x in found]

    def all_parts(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The values of all chips. `parts` are the values of this process's chips, and stay the same objects."""
        with without_modes():
            mine = torch.stack([part.detach() for part in parts])
            found = [list(x.to(mine.device)) for x in self.gather(mine)]
        found[self.rank] = list(parts)
        return [part for of_host in found for part in of_host]

    def close(self) -> None:
        """Ends the exchange with the other processes, which notice it immediately."""
        self._broken = self._broken or "the mesh is gone"
        self.__dict__.pop("_gloo", None)

    def _texts(self, text: str) -> list[str]:
        data = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
        sizes = [int(x) for x in self._all(torch.tensor([len(data)]))]
        padded = torch.nn.functional.pad(data, (0, max(sizes) - len(data)))
        found = zip(self._all(padded), sizes, strict=True)
        return [bytes(x[:size].tolist()).decode(errors="replace") for x, size in found]

    def _all(self, x: torch.Tensor) -> list[torch.Tensor]:
        if self._broken:
            raise HostError(self._broken)
        with without_modes():
            found = [torch.empty_like(x) for _ in range(self.size)]
            try:
                self._wait(self._gloo.allgather([found], [x]))  # type: ignore[attr-defined]
            except RuntimeError as error:
                self.close()
                self._broken = f"another process that shares the mesh has ended, or does not answer: {_reason(error)}"
                raise HostError(self._broken) from None
        return found

    def _wait(self, work: dist.Work) -> None:
        """Waits for an exchange, and lets Python react to signals every second: PyTorch's own wait takes no Ctrl-C."""
        try:
            while not work.is_completed():
                with suppress(RuntimeError):  # the second is over
                    work.wait(timedelta(seconds=1))
        except BaseException:
            threading.Thread(target=_let_end, args=(self.__dict__.pop("_gloo"), work), daemon=True).start()
            del work  # a traceback keeps this frame, and `work` would keep the connection
            raise
        work.wait()


def _let_end(_gloo: dist.ProcessGroupGloo, work: dist.Work) -> None:
    """Keeps the group until the exchange has ended. Without this, Python would wait for it when it drops the group."""
    with suppress(RuntimeError):
        work.wait()


def digest(tensors: Sequence[torch.Tensor]) -> str:
    """A hash of the values of tensors, as text."""
    made = hashlib.sha256()
    with without_modes():
        for x in tensors:
            plain = x.detach().resolve_conj().resolve_neg().cpu().contiguous()
            made.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
            made.update(plain.reshape(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]
    return made.hexdigest()[:16]


def meet(shape: Sequence[int]) -> Hosts:
    """Finds the other processes that `torchrun`, or another launcher with its variables, has started.

    `shape` is the mesh's shape. Raises MeshError if another process asks for another mesh, or if the processes cannot
    have equal numbers of its chips. Raises HostError if another process does not come.
    """
    chips = torch.Size(shape).numel()
    store, rank, size = compare(shape)
    if chips % size:
        raise MeshError(f"the mesh {tuple(shape)} has {chips} chips, which {size} processes cannot share equally")
    with _answers():
        return Hosts(store, rank, size, chips)


def compare(shape: Sequence[int]) -> tuple[Store, int, int]:
    """A store for keys of this mesh, the number of this process, and how many processes there are.

    Raises MeshError if another process asks for another mesh, and HostError if another process does not come.
    """
    with _answers():
        if not _launched:
            _launched.append(next(rendezvous("env://", timeout=_timeout())))
        found, rank, size = _launched[0]
        store = PrefixStore(f"tt_torch mesh {next(_meetings)}", found)
        store.set(f"shape {rank}", str(tuple(shape)))
        shapes = [store.get(f"shape {other}").decode() for other in range(size)]
    if len(set(shapes)) > 1:
        asked = "; ".join(f"process {i}: {text}" for i, text in enumerate(shapes))
        raise MeshError(f"the processes ask for different meshes: {asked}")
    return store, rank, size


@contextmanager
def _answers() -> Iterator[None]:
    """Turns errors of gloo and of the store into HostError."""
    try:
        yield
    except RuntimeError as error:
        raise HostError(f"another process that should share the mesh does not answer: {_reason(error)}") from None


def _reason(error: RuntimeError) -> str:
    """The words of gloo, without the line of its source and advice."""
    text = str(error).partition("\n")[0].partition(" This is typically")[0]
    return re.sub(r"^\[[^]]*\] ", "", text)


def _timeout() -> timedelta:
    given = os.environ.get(TIMEOUT)
    return timedelta(seconds=float(given)) if given else dist.default_pg_timeout

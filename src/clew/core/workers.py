"""Work handed to processes of a Ray cluster, or of one started for it here; a killed process loses nothing.

A job is sent to every worker once and opened there. Items follow a few at a time, and results come back as they are
done. What a lost worker had under way is done again by another one, so that results do not depend on who did the work.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from clew.core.errors import InputError, WorkerError, needing
from clew.core.version import __version__

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

AUTO = "auto"
ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[\da-fA-F:]+\]):(?P<port>\d{1,5})")
AHEAD = 2
"""Items that a worker has at once: when it is done with one, the next lies there."""
BACKLOG = 32
"""Items for each worker that may be finished before an older one is: what waits for its turn is held in memory."""
TRIES = 3
"""How often an item may be lost with its worker, and a worker before it has begun: something there ends them."""
ANSWERS_WITHIN = 5.0
"""Seconds in which a cluster must take a connection."""
BEGINS_WITHIN = 300.0
"""Seconds in which the first worker must begin; a cluster may have to start a machine for it."""


class Job(Protocol[T_contra, R_co]):
    """What workers are sent: small, and it can be pickled."""

    def open(self) -> Callable[[T_contra], R_co]:
        """Called by each worker once: what does one item."""
        ...


@dataclass(frozen=True)
class Workers:
    """The processes that a command may use."""

    count: int

    def each(self, job: Job[T, R], items: Iterable[T]) -> Generator[tuple[int, R], None, None]:
        """Results with the positions of their items as they come; an item is drawn only when a worker is free for it.

        The first failure is raised at once. A worker that cannot open the job is an error: none of them could.
        """
        crew = _Crew(job)
        try:
            yield from crew.work(items, self.count)
        finally:
            crew.dismiss()

    def ordered(self, job: Job[T, R], items: Iterable[T]) -> Iterator[R]:
        """Results in the order of their items."""
        early: dict[int, R] = {}
        wanted = 0
        for place, result in self.each(job, items):
            early[place] = result
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1


@contextmanager
def hired(address: str | None) -> Iterator[Workers | None]:
    """The workers that `--ray` names: `auto` starts a Ray here for as long as it is open, HOST:PORT joins a cluster."""
    if address is None:
        yield None
        return
    parts = ADDRESS.fullmatch(address)
    if address != AUTO and parts is None:
        raise InputError(f"--ray {address}: expected auto, or HOST:PORT of a cluster, such as 10.0.0.1:6379")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or it reports to its makers
    os.environ.setdefault("RAY_worker_niceness", "0")  # as urgent as the command, where it starts a Ray
    logging.getLogger("ray").setLevel(logging.ERROR)  # it says each time that it asks for its token
    with needing("ray", "ray"):
        import ray
    options = {"include_dashboard": False, "num_cpus": os.cpu_count()} if parts is None else {}
    try:
        if parts is not None:
            socket.create_connection((parts["host"].strip("[]"), int(parts["port"])), ANSWERS_WITHIN).close()
        ray.init("local" if parts is None else address, log_to_driver=False, logging_level="ERROR", **options)
    except (OSError, RuntimeError, ValueError, OverflowError, ray.exceptions.RayError) as error:
        remedy = (
            "is it running (`ray status`), has this machine joined it (`ray start --address`), "
            "and does it ask for a token (RAY_AUTH_MODE=token)?"
        )
        where = f"the Ray cluster at {address} cannot be joined" if parts else "Ray cannot be started here"
        raise WorkerError(f"{where}: {error}; {remedy if parts else 'leave out --ray to do without'}") from error
    try:
        yield Workers(max(1, int(ray.cluster_resources().get("CPU", 1))))
    finally:
        ray.shutdown()


@dataclass(eq=False)
class _Task:
    place: int
    item: bytes
    losses: int = 0


@dataclass(eq=False)
class _Worker:
    handle: Any
    tasks: list[_Task] = field(default_factory=list)
    """What it has, in the order in which it is done."""


class _Crew:
    """The workers of one job, and who does what."""

    def __init__(self, job: Job[Any, Any]) -> None:
        import ray

        self._ray, self._pickle = ray, ray.cloudpickle
        self._job = ray.cloudpickle.dumps(job)
        self._remote = ray.remote(num_cpus=1)(_remote_class())
        self._starting: dict[Any, _Worker] = {}
        self._ready: list[_Worker] = []
        self._under_way: dict[Any, tuple[_Task, _Worker]] = {}
        self._again: deque[_Task] = deque()
        self._losses = 0

    def work(self, items: Iterable[T], most: int) -> Iterator[tuple[int, Any]]:
        source = enumerate(items)
        first = next(source, None)
        if first is None:
            return
        self._again.append(self._task(*first))
        for _ in range(most):
            self._start()
        while self._hand_out(source, BACKLOG * most):
            waiting = [*self._under_way, *self._starting]
            done, _ = self._ray.wait(waiting, num_returns=1, timeout=None if self._ready else BEGINS_WITHIN)
            if not done:
                raise WorkerError(
                    f"no worker has begun within {BEGINS_WITHIN:.0f} seconds: has the cluster a processor to spare? "
                    "`ray status` tells"
                )
            if done[0] in self._starting:
                self._welcome(done[0])
            elif (result := self._finish(done[0])) is not None:
                yield result

    def dismiss(self) -> None:
        """End all workers at once."""
        for worker in (*self._ready, *self._starting.values()):
            self._ray.kill(worker.handle)

    def _task(self, place: int, item: object) -> _Task:
        return _Task(place, self._pickle.dumps(item))

    def _start(self) -> None:
        worker = _Worker(self._remote.remote(__version__, self._job))
        self._starting[worker.handle.begin.remote()] = worker

    def _hand_out(self, source: Iterator[tuple[int, Any]], backlog: int) -> bool:
        """Give items to workers that are free; False when all is done."""
        while self._ready:
            worker = min(self._ready, key=lambda one: len(one.tasks))
            if len(worker.tasks) >= AHEAD:
                break
            task = self._again.popleft() if self._again else self._drawn(source, backlog)
            if task is None:
                break
            worker.tasks.append(task)
            self._under_way[worker.handle.do.remote(task.item)] = task, worker
        return bool(self._under_way or self._again)

    def _drawn(self, source: Iterator[tuple[int, Any]], backlog: int) -> _Task | None:
        oldest = min((task.place for task, _ in self._under_way.values()), default=None)
        newest = max((task.place for task, _ in self._under_way.values()), default=0)
        if oldest is not None and newest - oldest >= backlog:
            return None
        drawn = next(source, None)
        return None if drawn is None else self._task(*drawn)

    def _welcome(self, begun: Any) -> None:
        """A worker has begun, or it never will."""
        worker = self._starting.pop(begun)
        try:
            version, host, failure = self._ray.get(begun)
        except self._ray.exceptions.RayActorError as error:
            self._losses += 1
            if self._losses >= TRIES:
                raise WorkerError(f"{self._losses} workers ended before they had begun; the last: {error}") from error
            self._start()
            return
        self._losses = 0
        if version != __version__:
            has = "no Clew" if version is None else f"Clew {version}"
            raise WorkerError(f"the worker on {host} has {has}, this is {__version__}: install the same one there")
        if failure is not None:
            reason = self._pickle.loads(failure)
            raise WorkerError(
                f"the worker on {host} cannot begin: {reason}; workers need the same folders under the same names"
            ) from reason
        self._ready.append(worker)

    def _finish(self, done: Any) -> tuple[int, Any] | None:
        """The result of a task; None where its worker was lost, and another one has to do it again."""
        task, worker = self._under_way.pop(done)
        try:
            result, failure = self._pickle.loads(self._ray.get(done))
        except self._ray.exceptions.RayTaskError:
            raise  # an error of ours, not of the worker
        except self._ray.exceptions.RayError as error:
            if worker in self._ready:
                self._lose(worker, error)
            self._again.append(task)
            return None
        worker.tasks.remove(task)
        if failure is not None:
            raise failure
        return task.place, result

    def _lose(self, worker: _Worker, error: Exception) -> None:
        """Start another worker in its place; what it was at may have ended it, what lay behind that did not."""
        self._ready.remove(worker)
        self._ray.kill(worker.handle)  # it may only be out of reach
        running = worker.tasks[0]
        running.losses += 1
        if running.losses >= TRIES:
            why = str(error).partition("\n")[0]
            raise WorkerError(f"{TRIES} workers ended over item {running.place + 1}; the last: {why}") from error
        self._start()


def _remote_class() -> type:
    """What runs at a worker. Its class has no place in a module, so that it gets there where Clew is not installed."""

    class Worker:
        def __init__(self, version: str, job: bytes) -> None:
            self.version, self.job = version, job

        def begin(self) -> tuple[str | None, str, bytes | None]:
            """The version found and the host, and why the job cannot be opened, where it cannot."""
            from ray import cloudpickle

            host = socket.gethostname()
            try:
                from clew.core.version import __version__ as found
            except ImportError:
                return None, host, None
            failure = None
            if found == self.version:
                try:
                    self.work = cloudpickle.loads(self.job).open()
                except Exception as error:  # carried over to the driver
                    failure = cloudpickle.dumps(error)
            return found, host, failure

        def do(self, item: bytes) -> bytes:
            from ray import cloudpickle

            try:
                result, failure = self.work(cloudpickle.loads(item)), None
            except Exception as error:  # carried over to the driver
                result, failure = None, error
            packed: bytes = cloudpickle.dumps((result, failure))
            return packed

    return Worker

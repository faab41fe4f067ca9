"""Parallel work in processes of a Ray cluster, or of a local Ray, that survives the loss of processes.

Every worker receives the job once and opens it. Items follow in small numbers, and results return as they finish.
Another worker repeats the items of a lost worker, so results do not depend on which worker computed them.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
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
"""Items queued at a worker, so that it need not wait for the next item."""
BACKLOG = 32
"""Maximum items per worker finished before an older item, since results that wait for their turn take memory."""
TRIES = 3
"""Number of lost workers that raises an error: over one item, or in a row while starting."""
ANSWERS_WITHIN = 5.0
"""Seconds to wait for a connection to the cluster."""
CHECKED_AFTER = 20.0
"""Seconds without a result after which to check that Ray still runs. Waiting alone does not notice its end."""
ENDED = "Ray ended before the work was done: run the command again, it continues there"
BEGINS_WITHIN = 300.0
"""Seconds to wait for the first worker. A cluster may have to start a machine."""


class Job(Protocol[T_contra, R_co]):
    """Work to send to the workers. It must be small and picklable."""

    def open(self) -> Callable[[T_contra], R_co]:
        """Return the function that processes an item. Each worker calls this once."""


@dataclass(frozen=True)
class Workers:
    """Processes available to a command."""

    count: int

    def each(self, job: Job[T, R], items: Iterable[T]) -> Generator[tuple[int, R], None, None]:
        """Yield results with the indexes of their items as they finish. Take an item only when a worker is free.

        Raise the first failure at once, including a worker that cannot open the job, since all workers would fail.
        """
        crew = _Crew(job)
        try:
            yield from crew.work(items, self.count)
        except OSError as error:
            if error.errno is not None:
                raise
            raise WorkerError(ENDED) from error  # Ray's own, "Broken pipe" without a number
        finally:
            crew.dismiss()

    def ordered(self, job: Job[T, R], items: Iterable[T]) -> Iterator[R]:
        """Yield results in the order of their items."""
        early: dict[int, R] = {}
        wanted = 0
        for place, result in self.each(job, items):
            early[place] = result
            while wanted in early:
                yield early.pop(wanted)
                wanted += 1


@contextmanager
def hired(address: str | None) -> Iterator[Workers | None]:
    """Open the workers named by `--ray`: `auto` starts a local Ray for the block, HOST:PORT joins a cluster."""
    if address is None:
        yield None
        return
    parts = ADDRESS.fullmatch(address)
    if address != AUTO and parts is None:
        raise InputError(f"--ray {address}: expected auto, or HOST:PORT of a cluster, such as 10.0.0.1:6379")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    os.environ.setdefault("RAY_worker_niceness", "0")  # same priority as the command, for a local Ray
    logging.getLogger("ray").setLevel(logging.ERROR)  # it logs every request for its token
    with needing("ray", "ray"):
        import ray
    options = {"include_dashboard": False, "num_cpus": os.cpu_count()} if parts is None else {}
    try:
        if parts is not None:
            socket.create_connection((parts["host"].strip("[]"), int(parts["port"])), ANSWERS_WITHIN).close()
        ray.init("local" if parts is None else address, log_to_driver=False, logging_level="ERROR", **options)
    except Exception as error:  # Ray raises plain exceptions, too, if its processes do not start
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
class _WorkerTask:
    place: int
    item: bytes
    losses: int = 0


@dataclass(eq=False)
class _Worker:
    handle: Any
    tasks: list[_WorkerTask] = field(default_factory=list)
    """Assigned tasks in the order of execution."""


class _Crew:
    """The workers of one job and their tasks."""

    def __init__(self, job: Job[Any, Any]) -> None:
        import ray

        self._ray, self._pickle = ray, ray.cloudpickle
        self._job = ray.cloudpickle.dumps(job)
        self._remote = ray.remote(num_cpus=1)(_remote_class())
        self._starting: dict[Any, _Worker] = {}
        self._ready: list[_Worker] = []
        self._under_way: dict[Any, tuple[_WorkerTask, _Worker]] = {}
        self._again: deque[_WorkerTask] = deque()
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
            done = self._wait([*self._under_way, *self._starting])
            if done[0] in self._starting:
                self._welcome(done[0])
            elif (result := self._finish(done[0])) is not None:
                yield result

    def _wait(self, waiting: Sequence[Any]) -> list[Any]:
        for _ in range(int(BEGINS_WITHIN / CHECKED_AFTER)) if not self._ready else count():
            done, _ = self._ray.wait(waiting, num_returns=1, timeout=CHECKED_AFTER)
            if done:
                return list(done)
            if not any(node["Alive"] for node in self._ray.nodes()):
                raise WorkerError(ENDED)
        raise WorkerError(
            f"no worker started within {BEGINS_WITHIN:.0f} seconds: check `ray status` for a free processor"
        )

    def dismiss(self) -> None:
        for worker in (*self._ready, *self._starting.values()):
            self._ray.kill(worker.handle)

    def _task(self, place: int, item: object) -> _WorkerTask:
        return _WorkerTask(place, self._pickle.dumps(item))

    def _start(self) -> None:
        worker = _Worker(self._remote.remote(__version__, self._job))
        self._starting[worker.handle.begin.remote()] = worker

    def _hand_out(self, source: Iterator[tuple[int, Any]], backlog: int) -> bool:
        """Assign items to free workers. Return False when all work is done."""
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

    def _drawn(self, source: Iterator[tuple[int, Any]], backlog: int) -> _WorkerTask | None:
        oldest = min((task.place for task, _ in self._under_way.values()), default=None)
        newest = max((task.place for task, _ in self._under_way.values()), default=0)
        if oldest is not None and newest - oldest >= backlog:
            return None
        drawn = next(source, None)
        return None if drawn is None else self._task(*drawn)

    def _welcome(self, begun: Any) -> None:
        """Add a started worker, or handle its failure to start."""
        worker = self._starting.pop(begun)
        try:
            version, host, failure = self._ray.get(begun)
        except self._ray.exceptions.RayActorError as error:
            self._losses += 1
            if self._losses >= TRIES:
                raise WorkerError(f"{self._losses} workers ended while starting: {error}") from error
            self._start()
            return
        self._losses = 0
        if version != __version__:
            has = "no Clew" if version is None else f"Clew {version}"
            raise WorkerError(f"the worker on {host} has {has}, this is {__version__}: install the same version there")
        if failure is not None:
            reason = self._pickle.loads(failure)
            raise WorkerError(
                f"the worker on {host} cannot start: {reason}; workers need the same folders under the same names"
            ) from reason
        self._ready.append(worker)

    def _finish(self, done: Any) -> tuple[int, Any] | None:
        """Return the result of a task, or None if its worker was lost and another worker must repeat it."""
        task, worker = self._under_way.pop(done)
        try:
            result, failure = self._pickle.loads(self._ray.get(done))
        except self._ray.exceptions.RayTaskError:
            raise  # a bug in Clew, not a lost worker
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
        """Replace a lost worker. Only its running task may have caused the loss, so only that task counts it."""
        self._ready.remove(worker)
        self._ray.kill(worker.handle)  # it may still run, but be unreachable
        running = worker.tasks[0]
        running.losses += 1
        if running.losses >= TRIES:
            why = str(error).partition("\n")[0]
            raise WorkerError(f"{TRIES} workers ended while processing item {running.place + 1}: {why}") from error
        self._start()


def _remote_class() -> type:
    """Return the class that runs at a worker, defined locally so that Ray can send it to machines without Clew."""

    class Worker:
        def __init__(self, version: str, job: bytes) -> None:
            self.version, self.job = version, job

        def begin(self) -> tuple[str | None, str, bytes | None]:
            """Return the installed version, the host, and the pickled error if the job cannot be opened."""
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
                except Exception as error:  # sent to the driver
                    failure = cloudpickle.dumps(error)
            return found, host, failure

        def do(self, item: bytes) -> bytes:
            from ray import cloudpickle

            try:
                result, failure = self.work(cloudpickle.loads(item)), None
            except Exception as error:  # sent to the driver
                result, failure = None, error
            packed: bytes = cloudpickle.dumps((result, failure))
            return packed

    return Worker

"""Read files in several processes, with limits on time and memory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from socket import gethostname
from threading import Event, Lock, Thread, Timer
from typing import Self

from clew.core.errors import NotFoundError
from clew.core.limits import Process, start_module
from clew.core.workers import Workers
from clew.documents.reading import LENGTH

MODULE = "clew.documents.reading"
TOO_LONG = "the file took too long to read: {seconds:.0f} seconds"
Replies = SimpleQueue[tuple[int, bytes]]
DIED = "the file could not be read: the process that read it ended"


def seconds_for(size: int) -> float:
    """Return the time limit for a file of `size` bytes: two minutes, and 30 seconds per megabyte."""
    return 120 + 30 * size / 1_000_000


class ReadingProcesses:
    """Reads files while it is open. All processes end when it is closed."""

    def __init__(self, files: Sequence[Path], jobs: int, keep: Callable[[int, bytes], None]) -> None:
        """Prepare the processes. `keep` gets the index of each file and its reply, in the waiting thread."""
        self._keep = keep
        self._replies: Replies = SimpleQueue()
        waiting: SimpleQueue[int] = SimpleQueue()
        for index in range(len(files)):
            waiting.put(index)
        self._processes = [_Process(files, waiting, self._replies) for _ in range(min(jobs, len(files)))]

    def __enter__(self) -> Self:
        try:
            for process in self._processes:
                process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self) -> None:
        """Wait until one more file has been read."""
        self._keep(*self._replies.get())

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.stop()
        while not self._replies.empty():  # replies that have not been waited for
            self._keep(*self._replies.get())


class ReadingWorkers:
    """Reads files with workers, each in a subprocess with the same limits."""

    def __init__(self, files: Sequence[Path], workers: Workers, keep: Callable[[int, bytes], None]) -> None:
        self._keep = keep
        self._replies = workers.each(ReadFiles(), [file.absolute() for file in files])

    def __enter__(self) -> Self:
        return self

    def wait(self) -> None:
        """Wait until one more file has been read."""
        self._keep(*next(self._replies))

    def __exit__(self, *_: object) -> None:
        self._replies.close()


@dataclass(frozen=True)
class ReadFiles:
    """Task that workers receive to read files."""

    def open(self) -> Callable[[Path], bytes]:
        """Return a function that reads a file in a subprocess and returns the reply."""
        process = _Process((), SimpleQueue(), SimpleQueue())

        def read(file: Path) -> bytes:
            if not file.exists():
                raise NotFoundError(f"the worker on {gethostname()} cannot see {file}: workers need the same folders")
            return process.read(file)

        return read


class _Process(Thread):
    """Thread that feeds one process, and restarts it if it had to be ended."""

    def __init__(self, files: Sequence[Path], waiting: SimpleQueue[int], replies: Replies) -> None:
        super().__init__(daemon=True)
        self._files, self._waiting, self._replies = files, waiting, replies
        self._process: Process | None = None
        self._lock = Lock()
        self._stopped = False

    def run(self) -> None:
        """Read files until the queue is empty."""
        while not self._stopped:
            try:
                index = self._waiting.get_nowait()
            except Empty:
                break
            reply = self.read(self._files[index])
            if not self._stopped:
                self._replies.put((index, reply))
        self._end()

    def stop(self) -> None:
        """End the process immediately."""
        self._stopped = True
        self._end()
        if self.ident is not None:
            self.join()

    def read(self, file: Path) -> bytes:
        """Return the process's reply for a file, or an error."""
        try:
            return self._read(file)
        except OSError as error:
            return _refused(f"the file cannot be read: {error}")

    def _read(self, file: Path) -> bytes:
        seconds = seconds_for(file.stat().st_size)
        process = self._running()
        if process is None:
            return _refused(DIED)
        assert process.stdin is not None
        assert process.stdout is not None
        late = Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = Timer(seconds, end)
        timer.start()
        try:
            process.stdin.write(json.dumps([str(file), seconds]).encode() + b"\n")
            process.stdin.flush()
            length = process.stdout.read(LENGTH)
            reply = process.stdout.read(int.from_bytes(length, "big"))
            complete = len(length) == LENGTH and len(reply) == int.from_bytes(length, "big")
        except (BrokenPipeError, ValueError):  # the process ended, or `stop` closed it
            complete = False
        finally:
            timer.cancel()
        if complete:
            return reply
        self._end()
        return _refused(TOO_LONG.format(seconds=seconds) if late.is_set() else DIED)

    def _running(self) -> Process | None:
        with self._lock:
            if self._process is None and not self._stopped:
                self._process = start_module(MODULE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, apart=True)
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _refused(why: str) -> bytes:
    return json.dumps({"error": why}).encode()

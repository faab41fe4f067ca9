"""Files read by several processes, each within a limit of time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import Self

from clew.documents.reading_process import LENGTH

COMMAND = ("-m", "clew.documents.reading_process")
SECONDS = 120
SECONDS_PER_MEGABYTE = 30
"""How long one file may take: many pages take long, and none takes forever."""
TOO_LONG = "the file took too long to read: {seconds:.0f} seconds"
Replies = SimpleQueue[tuple[int, bytes]]
DIED = "the file could not be read: the process that read it ended"


def seconds_for(size: int) -> float:
    """How long a file of so many bytes may take."""
    return SECONDS + SECONDS_PER_MEGABYTE * size / 1_000_000


class ReadingProcesses:
    """Reads files while it is open; at its end nothing is left running, whatever happened."""

    def __init__(self, files: Sequence[Path], jobs: int, keep: Callable[[int, bytes], None]) -> None:
        """`keep` is given the place of each file and the reply about it, in the thread that waits."""
        self._keep = keep
        self._replies: Replies = SimpleQueue()
        waiting: SimpleQueue[int] = SimpleQueue()
        for place in range(len(files)):
            waiting.put(place)
        self._workers = [_Worker(files, waiting, self._replies) for _ in range(min(jobs, len(files)))]

    def __enter__(self) -> Self:
        try:
            for worker in self._workers:
                worker.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self) -> None:
        """Until one more file has been read."""
        self._keep(*self._replies.get())

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        while not self._replies.empty():  # read, though nobody has waited for it yet
            self._keep(*self._replies.get())


class _Worker(Thread):
    """Feeds one process; starts a new one where it had to be ended."""

    def __init__(self, files: Sequence[Path], waiting: SimpleQueue[int], replies: Replies) -> None:
        super().__init__(daemon=True)
        self._files, self._waiting, self._replies = files, waiting, replies
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._stopped = False

    def run(self) -> None:
        """Take files until there are none."""
        while not self._stopped:
            try:
                place = self._waiting.get_nowait()
            except Empty:
                break
            try:
                reply = self._read(self._files[place])
            except OSError as error:
                reply = _refused(f"the file cannot be read: {error}")
            if not self._stopped:
                self._replies.put((place, reply))
        self._end()

    def stop(self) -> None:
        """End the process at once."""
        self._stopped = True
        self._end()
        if self.ident is not None:
            self.join()

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
        except (BrokenPipeError, ValueError):  # ended, or closed by `stop` while it was read
            complete = False
        finally:
            timer.cancel()
        if complete:
            return reply
        self._end()
        return _refused(TOO_LONG.format(seconds=seconds) if late.is_set() else DIED)

    def _running(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._process is None and not self._stopped:
                self._process = subprocess.Popen(  # noqa: S603 - our own module
                    [sys.executable, *COMMAND],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                    start_new_session=True,  # Ctrl-C is for us, and we end it
                )
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

"""Read the texts of files, or the reasons for failures, here or in processes with limits on time and memory.

`python -m clew.documents.reading` reads files one by one. Each input line is a JSON list of a path and a time limit in
seconds. Each reply is the length of a JSON text in eight bytes, followed by the text.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from socket import gethostname
from threading import Event, Lock, Thread, Timer
from typing import Self

from clew.core.errors import MissingExtraError, NotFoundError, SourceError
from clew.core.limits import Process, limit_memory, limit_seconds, start_module
from clew.core.workers import Workers
from clew.documents.extracted import Extracted, to_json
from clew.documents.formats import format_of, read_document


def check_file(file: Path, most_megabytes: int) -> None:
    """Raise SourceError for a file that is unusable by size or format."""
    try:
        size = file.stat().st_size
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror}", file=file) from error
    if size == 0:
        raise SourceError("the file is empty", file=file)
    if size > most_megabytes * 1_000_000:
        raise SourceError(f"the file has {size // 1_000_000} MB, more than the limit of {most_megabytes} MB", file=file)
    if not format_of(file):
        raise SourceError(f"unsupported format {file.suffix or file.name!r}, and not a text file", file=file)


def read_file(file: Path) -> Extracted:
    """Read the text of a file. Raise SourceError for any failure."""
    try:
        extracted = read_document(file)
    except MissingExtraError as error:
        raise SourceError(str(error), file=file) from error
    except OSError as error:
        raise SourceError(f"the file cannot be opened: {error.strerror or error}", file=file) from error
    except MemoryError as error:
        raise SourceError("the file exceeds the memory limit", file=file) from error
    except RecursionError as error:
        raise SourceError("the file is damaged: it is nested too deeply", file=file) from error
    if not any(block.start < block.end for block in extracted.blocks):
        raise SourceError("the file contains no text", file=file)
    return extracted


def reason(error: SourceError, file: Path) -> str:
    """Return the message of an error without the file name."""
    return str(error).removeprefix(f"{file}: ")


MEMORY = 4 << 30
"""Maximum address space of the process, in bytes."""
LENGTH = 8
"""Bytes before each reply that tell its length."""


def main() -> None:
    """Read files until the input ends or the output is closed."""
    limit_memory(MEMORY)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep the output of libraries out of the replies
    for line in sys.stdin.buffer:
        path, seconds = json.loads(line)
        limit_seconds(int(seconds) + 5)
        reply = replied(Path(path))
        try:
            replies.write(len(reply).to_bytes(LENGTH, "big") + reply)
            replies.flush()
        except BrokenPipeError:
            return


def replied(file: Path) -> bytes:
    """Read a file and return the text or an error as JSON."""
    try:
        return to_json(read_file(file))
    except SourceError as error:
        return _refused(reason(error, file))
    except MemoryError:
        return _refused("the file exceeds the memory limit")


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


if __name__ == "__main__":
    main()

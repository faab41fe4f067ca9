"""Time and memory of building a base from one large table, beside DuckDB's import of the same file.

usage: python benchmarks/large_tables.py [ROWS …] (default 1000000 10000000)

Every build is a process of its own. Needs the extra `duckdb`.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq


def write(rows: int, folder: Path) -> None:
    """Write orders with numbers, prices, days, a category and a text, as CSV and Parquet."""
    chance = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "dark blue"])
    table = pa.table(
        {
            "order_no": np.arange(rows),
            "customer": np.char.add("customer ", chance.integers(0, max(1, rows // 20), rows).astype(str)),
            "price": np.round(chance.random(rows) * 1000, 2),
            "amount": chance.integers(1, 9, rows),
            "day": pa.array(chance.integers(10_000, 20_000, rows), pa.int32()).cast(pa.date32()),
            "colour": colours[chance.integers(0, len(colours), rows)],
        }
    )
    pcsv.write_csv(table, folder / "orders.csv")
    pq.write_table(table, folder / "orders.parquet")


def by_clew(file: Path, out: Path) -> None:
    """Build a base."""
    import clew

    clew.build([file], out / "orders.kb")


def by_duckdb(file: Path, out: Path) -> None:
    """Import into a database."""
    import duckdb

    with duckdb.connect(str(out / "orders.duckdb")) as base:
        base.execute(f"CREATE TABLE orders AS SELECT * FROM '{file}'")


def run(
    read: Callable[[Path, Path], None], file: Path, out: Path, told: multiprocessing.Queue[dict[str, float]]
) -> None:
    """Time a reader in this process."""
    begun = time.perf_counter()
    read(file, out)
    seconds, peak = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told.put({"seconds": round(seconds, 1), "peak_mb": peak // 1000})


def main() -> None:
    """Print a line for each number of rows, format and reader."""
    spawned = multiprocessing.get_context("spawn")
    for rows in map(int, sys.argv[1:] or ("1000000", "10000000")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(rows, folder)
            for file in (folder / "orders.csv", folder / "orders.parquet"):
                for read in (by_clew, by_duckdb):
                    with tempfile.TemporaryDirectory() as out:
                        told = spawned.Queue()
                        process = spawned.Process(target=run, args=(read, file, Path(out), told))
                        process.start()
                        process.join()
                        found = told.get(timeout=5) if process.exitcode == 0 else {"failed": process.exitcode}
                        print(
                            json.dumps({"rows": rows, "file": file.suffix, "reader": read.__name__, **found}),
                            flush=True,
                        )


if __name__ == "__main__":
    main()

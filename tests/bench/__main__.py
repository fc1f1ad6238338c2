"""Run the benchmarks and print one table: ``python -m tests.bench [--json FILE] [--quick]``."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import answers, decoding, delays, frames, imports, live, many, soak, tapes
from tests.bench.report import Row, machine, table, write_json

SECTIONS: dict[str, Callable[[bool], list[Row]]] = {
    "decoding": decoding.measure,
    "answers": answers.measure,
    "imports": imports.measure,
    "delays": delays.measure,
    "live": live.measure,
    "frames": frames.measure,
    "many": many.measure,
    "soak": soak.measure,
    "tapes": tapes.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; default all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, too")
    parser.add_argument("--quick", action="store_true", help="fewer runs, rougher figures")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")

    print("  ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYPERPLEXITY_HOME"] = folder  # no figure depends on a user's settings
        for name in options.sections or SECTIONS:
            found = SECTIONS[name](options.quick)
            print(table(found), end="\n\n", flush=True)
            rows += found
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()

"""The table: one row a measurement, with the target where there is one."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measurement; `value` is None when there is none, and `note` then says why."""

    case: str
    subject: str
    value: float | None
    unit: str
    note: str = ""
    target: str = ""
    reached: bool | None = None


def best_of(runs: int, work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the shortest of `runs` times in seconds: load only ever adds."""
    times = []
    for _ in range(runs):
        began = clock()
        work()
        times.append(clock() - began)
    return min(times)


def cpu_time() -> float:
    return time.process_time()


def missing(case: str, subject: str, unit: str, error: Exception) -> Row:
    name = getattr(error, "name", None) or ""
    absent = isinstance(error, ModuleNotFoundError) and not name.startswith("ipyperplexity")
    reason = f"not installed: {name}" if absent else f"not available: {error}"
    return Row(case, subject, None, unit, reason)


def table(rows: Iterable[Row]) -> str:
    lines = []
    for case, group in groupby(rows, key=lambda row: row.case):
        lines += ["", case]
        for row in group:
            value = "-" if row.value is None else f"{row.value:,.2f}"
            verdict = {True: "reached", False: "MISSED", None: ""}[row.reached]
            target = f"  [{row.target}: {verdict}]" if row.target else ""
            line = f"  {row.subject:<34} {value:>10} {row.unit:<9} {row.note}{target}"
            lines.append(line.rstrip())
    return "\n".join(lines).lstrip("\n")


def machine() -> dict[str, str]:
    peers = ("httpx", "httpx-sse", "sseclient-py", "perplexityai", "openai")
    facts = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*peers, "requests", "urllib3", "ipython"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def write_json(path: Path, rows: Iterable[Row]) -> None:
    record = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

"""What a user waits for at the first cell: fresh processes, over a bare IPython."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from tests.bench.loopback import ROOT
from tests.bench.report import Row

FORBIDDEN = {"requests", "ipywidgets", "pandas", "markdown_it"}
HEAVY = FORBIDDEN | {"urllib3", "ipykernel", "polars", "pyarrow", "numpy", "matplotlib", "nh3"}
HEAVY |= {
    "jsonpatch",
    "httpx",
    "httpx2",
    "pydantic",
    "ssl",
    "http.client",
    "sqlite3",
    "importlib.metadata",
}

CHILD = """
import json, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
began = time.perf_counter()
{statement}
seconds = time.perf_counter() - began
print(json.dumps([seconds, sorted(set(sys.modules) - before)]))
"""

STATEMENTS = {
    "import ipyperplexity": "import ipyperplexity; ipyperplexity.__version__",
    "%load_ext ipyperplexity": "assert shell.extension_manager.load_extension('ipyperplexity') is None",
    "import requests": "import requests",
    "import httpx": "import httpx",
    "import perplexity (SDK)": "import perplexity",
    "import openai": "import openai",
}


def measure(quick: bool = False) -> list[Row]:
    runs = 3 if quick else 7
    rows = []
    for subject, statement in STATEMENTS.items():
        case = "import time over bare IPython, fresh process, median"
        results: list[tuple[float, list[str]]] = []
        failure = ""
        for _ in range(runs):
            output = _fresh(CHILD.format(statement=statement))
            if output.returncode:
                failure = output.stderr.strip().splitlines()[-1]
                break
            results.append(json.loads(output.stdout))
        if failure:
            rows.append(Row(case, subject, None, "ms", f"not available: {failure}"))
            continue
        milliseconds = statistics.median(seconds for seconds, _ in results) * 1e3
        heavy = sorted(HEAVY.intersection(results[0][1]))
        note = f"{len(results[0][1])} modules" + (f"; loads {', '.join(heavy)}" if heavy else "")
        if "ipyperplexity" not in subject:
            rows.append(Row(case, subject, milliseconds, "ms", note))
            continue
        reached = milliseconds < 50 and FORBIDDEN.isdisjoint(heavy)
        target = "under 50 ms; no requests, ipywidgets, pandas, markdown"
        rows.append(Row(case, subject, milliseconds, "ms", note, target, reached))
    return rows


def _fresh(code: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "IPYTHONDIR": folder, "IPYPERPLEXITY_HOME": folder}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        )
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            check=False,
        )

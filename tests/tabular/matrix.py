"""Run the tests of everything that is a table against old and new frame libraries.

``python -m tests.tabular.matrix [NAME ...]`` makes a virtual environment for each combination in a
temporary folder, runs the tests there, and prints one line a combination; it exits with 1 if one
fails. ``--ci`` runs the few that tell most. ``--keep FOLDER`` keeps (and reuses) the environments.
pytest does not collect this file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALWAYS = ("pytest", "hypothesis", *PROJECT["dependencies"])
#: Tests of the objects that are tables; each skips what it has no library for.
TESTS = (HERE, ROOT / "tests/test_answer_frames.py", ROOT / "tests/test_answer_record.py")
WITH_PANDAS = tuple(
    ROOT / f"tests/test_{name}.py"
    for name in ("sources", "answer", "answer_table", "search_results", "models_table")
)
#: Those that tell most: old libraries, new ones, duckdb without pyarrow, nothing at all.
CI = ("old", "new", "duckdb-and-nanoarrow", "no-frame-library")
COMBINATIONS: dict[str, tuple[str, ...]] = {
    "oldest": ("pandas==2.2.3", "numpy<2.3", "polars==1.3.0", "pyarrow==17.0.0", "duckdb==1.1.3"),
    "old": (
        "pandas==2.2.3",
        "numpy<2.3",
        "polars==1.12.0",
        "pyarrow==17.0.0",
        "duckdb==1.1.3",
        "nanoarrow==0.6.0",
    ),
    "pandas-2-alone": ("pandas==2.2.3", "numpy<2.3"),
    "new": (
        "pandas>=3",
        "polars>=2",
        "pyarrow",
        "duckdb>=2",
        "nanoarrow",
        "narwhals",
        "ibis-framework[duckdb]",
    ),
    "new-no-pyarrow": ("pandas>=3", "polars>=2", "duckdb>=2", "nanoarrow", "narwhals"),
    "pandas-3-alone": ("pandas>=3",),
    "polars-alone": ("polars>=2",),
    "duckdb-and-nanoarrow": ("duckdb>=2", "nanoarrow"),
    "no-frame-library": (),
}


def run(name: str, folder: Path) -> bool:
    began = time.monotonic()
    home = folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *ALWAYS, *COMBINATIONS[name]],
        capture_output=True,
        text=True,
    )
    if installed.returncode:
        print(f"{name:22} NOT INSTALLED  {installed.stderr.strip().splitlines()[-1]}", flush=True)
        return False
    has_pandas = any(package.startswith("pandas") for package in COMBINATIONS[name])
    # The project's own pytest settings name plugins that these environments do not have.
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\n")
    tests = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", settings,
         "--rootdir", ROOT, "--noconftest", *TESTS, *(WITH_PANDAS if has_pandas else ())],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    lines = tests.stdout.strip().splitlines() or tests.stderr.strip().splitlines()
    verdict = "ok    " if tests.returncode == 0 else "FAILED"
    seconds = time.monotonic() - began
    print(f"{name:22} {verdict} {lines[-1]}; with its environment {seconds:.0f} s", flush=True)
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"    {line}", flush=True)
    return tests.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMBINATIONS))
    parser.add_argument("--ci", action="store_true", help=f"run {', '.join(CI)}")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    unknown = set(given.names) - set(COMBINATIONS)
    if unknown:
        parser.error(f"no such combination: {', '.join(sorted(unknown))}")
    names = given.names or (CI if given.ci else COMBINATIONS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        passed = [run(name, folder) for name in names]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

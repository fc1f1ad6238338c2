"""Run all notebooks and save them with their outputs: ``python -m tests.notebooks``."""

from __future__ import annotations

from tests.notebooks.running import NAMES, write

if __name__ == "__main__":
    for name in NAMES:
        print(name)
        write(name)

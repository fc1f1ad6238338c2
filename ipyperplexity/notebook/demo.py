"""The first run: a real cell in a real shell, asked of the embedded engine."""

from __future__ import annotations

import io
import sys
import tempfile
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ipyperplexity.markup import terminal


def run_demo_cell(question: str) -> int:
    """Run ``%%perplexity`` in a new IPython shell on the demo engine; print text and sources.

    Returns
    -------
    int
        Exit code: 0 if the cell ended well.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A pipe of a narrow encoding gets question marks for what it lacks, not a traceback.
        sys.stdout.reconfigure(errors="replace")
    config = Config()
    config.HistoryManager.enabled = False
    config.PerplexityMagics.backend = "demo"
    # The first run leaves nothing behind: no history, no profile in the home folder.
    with tempfile.TemporaryDirectory() as folder:
        return _run(question, config, folder)


def _run(question: str, config: Config, folder: str) -> int:
    shell: Any = InteractiveShell.instance(config=config, ipython_dir=folder)
    shell.extension_manager.load_extension("ipyperplexity")
    options = "-o answer --no-vars" if "{{" in question else "-o answer"
    cell = f"%%perplexity {options}\n{question}"
    print(terminal.strip_controls("\n".join(f"In [1]: {cell}".splitlines())), end="\n\n")
    ran = shell.run_cell(cell, store_history=True)
    if not ran.success:
        return 130 if isinstance(ran.error_in_exec, KeyboardInterrupt) else 1
    print("\nIn [2]: answer.to_dicts()   # or answer.to_pandas(), to_polars(), to_arrow()\n")
    print(_table(shell.user_ns["answer"].to_dicts()))
    return 0


def _table(rows: list[dict[str, object]]) -> str:
    """Lay rows out in columns, the way a frame prints."""
    names = ("id", "title", "domain", "published", "cited", "url")
    widths = {"title": 44, "url": 80}
    cells = [
        [
            terminal.fit(terminal.strip_controls(str(row[name])), widths.get(name, 24))
            for name in names
        ]
        for row in rows
    ]
    columns = [
        max(terminal.display_width(line[i]) for line in [list(names), *cells])
        for i in range(len(names))
    ]
    lines = [
        "  ".join(
            cell + " " * (width - terminal.display_width(cell))
            for cell, width in zip(line, columns, strict=True)
        ).rstrip()
        for line in [list(names), *cells]
    ]
    return "\n".join(lines) if rows else "(no sources)"

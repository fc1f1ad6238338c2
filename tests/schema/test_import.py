"""What importing this room costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_handling_a_mismatch_does_not_load_what_compiles_a_form():
    program = (
        "import sys; from ipyperplexity.schema import SchemaMismatch;"
        "print([m for m in sys.modules if m.startswith('ipyperplexity.schema.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "['ipyperplexity.schema.mismatch']"

"""The Spark recipe of the data-analysis notebook, run as it stands there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer

KEY = "pplx-" + "sp4rk" * 6
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "data_analysis.ipynb"


def need_spark() -> Any:
    """Skip where there is no Spark; in CI that is a failure."""
    missing = "" if shutil.which("java") else "no java on this machine"
    try:
        import pyspark.sql
    except ImportError as error:
        missing = f"{error}: pip install pyspark"
    if not missing:
        return pyspark.sql.SparkSession
    if os.environ.get("IPYPERPLEXITY_TEST_SPARK"):
        pytest.fail(missing)
    pytest.skip(missing)


def recipe() -> str:
    import nbformat

    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    (cell,) = [cell for cell in cells if "spark" in cell.metadata.get("tags", ())]
    return str(cell.source)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    sessions = need_spark()
    # What Spark's workers have in their environment is what it was started with.
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with EmulatorServer(pace=0, api_key=KEY) as server:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", server.url)
        session = (
            sessions.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(tmp_path))
            .getOrCreate()
        )
        session.server = server
        try:
            yield session
        finally:
            session.stop()


@pytest.mark.timeout(240)
def test_the_recipe_asks_in_each_part_and_its_rows_come_back_as_declared(session: Any) -> None:
    import pandas as pd

    things = pd.DataFrame({"thing": ["lambda", "generator", "slice"], "chapter": [4, 6, 2]})
    names: dict[str, Any] = {"things": things}
    exec(compile(recipe(), NOTEBOOK.name, "exec"), names)
    enriched = names["enriched"]
    assert enriched.columns == ["thing", "chapter", "definition", "status", "cost_usd"]
    rows = {row["thing"]: row for row in enriched.collect()}
    assert set(rows) == set(things["thing"])
    for row in rows.values():
        assert row["status"] == "ok" and row["definition"]
        assert row["cost_usd"] == 0, "Spark works it out again for each look, and it is kept"
    assert len(session.server.requests) == 3
    assert rows["generator"]["chapter"] == 6
    assert {request.bearer for request in session.server.requests} == {KEY}

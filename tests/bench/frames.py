"""100,000 sources to a frame: attribute reads, checks and building, beside a list of dataclasses."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ipyperplexity.sources import Source, Sources
from tests.bench.report import Row, best_of, cpu_time, missing

COUNT = 100_000


@dataclass(frozen=True)
class Page:
    """What a user would write: the fields of a Source, and nothing else."""

    id: int
    title: str
    url: str
    domain: str
    published: dt.date | None
    updated: dt.date | None
    cited: bool
    n_cited: int
    snippet: str | None
    kind: str


def measure(quick: bool = False) -> list[Row]:
    runs = 2 if quick else 5
    case, unit = f"{COUNT:,} sources to a frame, CPU time", "ms"
    rows = list(_rows())
    pages, sources = [Page(*row) for row in rows], [Source(*row) for row in rows]
    builders: dict[str, tuple[str, Callable[[Any], object]]] = {
        "to_pandas": ("pandas", lambda pandas: pandas.DataFrame(pages)),
        "to_polars": ("polars", lambda polars: polars.DataFrame(pages)),
        "to_arrow": ("pyarrow", lambda _: None),
    }
    found: list[Row] = []
    for method, (module, of_list) in builders.items():
        try:
            library = importlib.import_module(module)
        except ImportError as error:
            found.append(missing(case, f"Sources.{method}()", unit, error))
            continue

        def ours(method: str = method) -> None:
            # Made anew each time: a Sources keeps its columns once somebody has looked.
            getattr(Sources(sources), method)()

        ours()
        mine = best_of(runs, ours, cpu_time)
        if module == "pyarrow":  # it takes no list of dataclasses
            found.append(Row(case, f"Sources.{method}()", mine * 1e3, unit))
            continue

        def theirs(library: Any = library, of_list: Callable[[Any], object] = of_list) -> None:
            of_list(library)

        other = best_of(runs, theirs, cpu_time)
        found.append(Row(case, f"{module}.DataFrame(list of dataclasses)", other * 1e3, unit))
        # polars takes dataclasses nearly as fast as columns, so only pandas has a target.
        target = "at most 1/10 of the list" if module == "pandas" else ""
        note = f"{other / mine:.1f} times cheaper"
        reached = mine * 10 <= other if target else None
        found.append(Row(case, f"Sources.{method}()", mine * 1e3, unit, note, target, reached))
    return found


def _rows() -> Iterable[tuple[Any, ...]]:
    first = dt.date(2020, 1, 1)
    for n in range(COUNT):
        domain = f"example{n % 997}.org"
        published = first + dt.timedelta(days=n % 2000) if n % 5 else None
        snippet = "What the page says about it, in some words. " * 4
        cited = n % 3 == 0
        url = f"https://{domain}/path/{n}"
        found = (published, None, cited, int(cited), snippet, "search")
        yield n, f"Title {n} of a page", url, domain, *found

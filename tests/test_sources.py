"""Sources: a table that frame libraries take as it is, and the numbers that ``[n]`` means."""

from __future__ import annotations

import collections.abc
import copy
import datetime as dt
import pickle
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.citations import count_citations
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.sources import SHOWN_ROWS, Source, Sources
from ipyperplexity.wire.source_collector import MAX_ID, SourceCollector, domain_of, parse_date

DUNE = Source(
    1,
    "Dune",
    "https://d.example/dune",
    "d.example",
    published=dt.date(2025, 3, 2),
    cited=True,
    n_cited=2,
    snippet="sand",
)
SEA = Source(3, "Sea", "https://s.example/sea", "s.example")
BAY = Source(11, "Bay", "https://s.example/bay", "s.example", cited=True, n_cited=1, kind="fetch")
THREE = Sources([DUNE, SEA, BAY])
EMPTY = Sources()
NAMES = [
    "id", "title", "url", "domain", "published", "updated", "cited", "n_cited", "snippet", "kind",
]  # fmt: skip
BOTH = pytest.mark.parametrize("sources", [THREE, EMPTY], ids=["3 rows", "0 rows"])


# --- the table in Python ---------------------------------------------------------------------


def test_a_position_gives_a_source_a_slice_gives_sources_and_a_name_gives_a_column() -> None:
    assert THREE[0] is DUNE
    assert THREE[-1] is BAY
    assert THREE[np.int64(1)] is SEA
    assert isinstance(THREE[:2], Sources)
    assert list(THREE[::-1]) == [BAY, SEA, DUNE]
    assert THREE["url"] == [DUNE.url, SEA.url, BAY.url]
    assert [source.id for source in THREE] == [1, 3, 11]
    assert len(THREE) == 3 and SEA in THREE and next(reversed(THREE)) is BAY
    assert EMPTY["url"] == []


def test_what_is_not_there_is_an_error_that_says_what_is() -> None:
    with pytest.raises(IndexError):
        THREE[3]
    with pytest.raises(KeyError, match="no column 'link'; there are id, title, url"):
        THREE["link"]
    with pytest.raises(KeyError, match="no source has the id 2; there are: 1, 3, 11"):
        THREE.by_id(2)
    with pytest.raises(KeyError, match="none"):
        EMPTY.by_id(1)
    with pytest.raises(KeyError) as caught:
        Sources(Source(n, "A", "https://a.example") for n in range(1, 10_000)).by_id(0)
    assert len(str(caught.value)) < 200


def test_by_id_finds_the_page_that_a_marker_means_whatever_the_order() -> None:
    assert THREE.by_id(11) is BAY
    assert Sources([BAY, DUNE]).by_id(1) is DUNE


def test_of_two_pages_with_one_number_the_first_has_it() -> None:
    twin = Source(1, "Other", "https://o.example")
    assert Sources([DUNE, twin]).by_id(1) is DUNE


def test_cited_are_those_that_the_text_cites_and_domains_are_counted_most_first() -> None:
    assert list(THREE.cited) == [DUNE, BAY]
    assert list(THREE.domains().items()) == [("s.example", 2), ("d.example", 1)]
    assert EMPTY.cited == EMPTY
    assert EMPTY.domains() == {}


def test_sources_are_true_if_there_are_any_equal_if_their_pages_are_and_never_a_key() -> None:
    assert THREE and not EMPTY
    assert Sources([DUNE, SEA, BAY]) == THREE
    assert THREE[:2] != THREE
    assert THREE != [DUNE, SEA, BAY]
    with pytest.raises(TypeError):
        hash(THREE)


def test_only_a_source_is_taken() -> None:
    with pytest.raises(InvalidRequestError, match="type dict; allowed: Source"):
        Sources([DUNE, {"id": 1}])  # type: ignore[list-item]


def test_frame_libraries_are_shown_no_other_way_in() -> None:
    assert not isinstance(THREE, collections.abc.Sequence)
    assert not hasattr(THREE, "__dataframe__")
    assert not hasattr(DUNE, "__slots__")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal_and_know_the_same(copied: Any) -> None:
    given = count_citations("Sea.[3]", Sources([DUNE, SEA, BAY], fetched=[11]))
    twin = copied(given)
    assert twin == given
    assert twin["n_cited"] == [0, 1, 0]
    assert twin.fetched(0) == given.fetched(0)
    assert twin.get(11) is None
    assert copied(DUNE) == DUNE


def test_head_leaves_out_what_is_not_cited_first_and_keeps_the_order() -> None:
    assert list(THREE.head(2)) == [DUNE, BAY]
    assert THREE.head(None) is THREE
    assert THREE.head(3) is THREE
    assert list(THREE.head(1)) == [DUNE]


def test_markers_are_counted_once_and_only_when_somebody_looks() -> None:
    calls = []

    def count(plain: Sources) -> dict[int, int]:
        calls.append(plain)
        return {3: 2}

    sources = THREE.counting(count)
    assert len(sources) == 3 and sources
    assert calls == []
    assert sources["n_cited"] == [0, 2, 0]
    assert sources["cited"] == [False, True, False]
    assert next(iter(sources.cited)).id == 3
    assert len(calls) == 1


# --- frames ----------------------------------------------------------------------------------


def text_dtype() -> str:
    return "str" if int(pd.__version__.split(".")[0]) >= 3 else "object"


@BOTH
def test_pandas_gets_the_same_columns_and_dtypes_at_any_number_of_rows(sources: Sources) -> None:
    frame = sources.to_pandas()
    assert list(frame.columns) == NAMES
    text = text_dtype()
    assert [str(dtype) for dtype in frame.dtypes] == [
        "int32", text, text, text, "datetime64[us]", "datetime64[us]", "bool", "int32", text, text,
    ]  # fmt: skip
    assert len(frame) == len(sources)
    assert not sources or frame["published"].dt.year[0] == 2025


@BOTH
def test_polars_gets_exact_types_at_any_number_of_rows(sources: Sources) -> None:
    pl = pytest.importorskip("polars")
    wanted = [
        pl.Int32, pl.String, pl.String, pl.String, pl.Date, pl.Date, pl.Boolean, pl.Int32,
        pl.String, pl.String,
    ]  # fmt: skip
    for frame in (sources.to_polars(), pl.DataFrame(sources)):
        assert frame.columns == NAMES
        assert frame.dtypes == wanted
        assert frame.height == len(sources)


@BOTH
def test_arrow_gets_exact_types_at_any_number_of_rows(sources: Sources) -> None:
    pa = pytest.importorskip("pyarrow")
    for table in (sources.to_arrow(), pa.table(sources)):
        assert table.column_names == NAMES
        assert [str(kind) for kind in table.schema.types] == [
            "int32", "string", "string", "string", "date32[day]", "date32[day]", "bool", "int32",
            "string", "string",
        ]  # fmt: skip
        assert table.num_rows == len(sources)


@BOTH
def test_duckdb_reads_a_variable_of_that_name(sources: Sources) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql("from sources").fetchall()
    assert [row[0] for row in found] == sources["id"]
    kinds = [str(kind) for kind in duckdb.sql("from sources").types]
    assert kinds == [
        "INTEGER", "VARCHAR", "VARCHAR", "VARCHAR", "DATE", "DATE", "BOOLEAN", "INTEGER", "VARCHAR",
        "VARCHAR",
    ]  # fmt: skip


def test_every_way_gives_the_same_values() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = THREE.to_dicts()
    assert rows[0] == {name: getattr(DUNE, name) for name in NAMES}
    assert pl.DataFrame(THREE).to_dicts() == rows
    assert pa.table(THREE).to_pylist() == rows
    frame = pd.DataFrame(THREE)
    assert list(frame.columns) == NAMES
    assert frame["url"].tolist() == THREE["url"]
    assert frame["n_cited"].tolist() == THREE["n_cited"]


def test_a_frame_of_its_own_is_made_each_time() -> None:
    frame = THREE.to_pandas()
    frame.loc[0, "title"] = "changed"
    assert THREE.to_pandas()["title"][0] == "Dune"
    THREE.to_dicts()[0]["title"] = "changed"
    assert THREE[0].title == "Dune"


def test_importing_the_class_loads_no_frame_library() -> None:
    import subprocess

    code = (
        "import sys, ipyperplexity.sources, ipyperplexity.answer;"
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'numpy', 'requests', 'IPython',"
        " 'markdown_it', 'nh3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_hundred_thousand_rows_cost_a_small_part_of_a_list_of_dataclasses() -> None:
    items = [
        Source(n, f"Title {n}", f"https://a.example/{n}", "a.example", dt.date(2025, 1, 1))
        for n in range(1, 100_001)
    ]

    def seconds(make: Any) -> float:
        began = time.process_time()
        assert len(make()) == len(items)
        return time.process_time() - began

    ours = min(seconds(lambda: Sources(items).to_pandas()) for _ in range(3))
    theirs = seconds(lambda: pd.DataFrame(items))
    assert ours < theirs / 4


# --- displays --------------------------------------------------------------------------------


HOSTILE = '</td><script>alert(1)</script><img src=x onerror=alert(1)> "\x1b[31m\u202e'


def test_a_hostile_page_is_inert_wherever_it_is_shown() -> None:
    source = Source(1, HOSTILE, "javascript:alert(1)", HOSTILE, snippet=HOSTILE)
    for html in (Sources([source])._repr_html_(), source._repr_html_()):
        assert "<script" not in html and "<img" not in html
        assert "href" not in html
        assert "\x1b" not in html and "\u202e" not in html
    for text in (repr(Sources([source])), repr(source)):
        assert "\x1b" not in text and "\u202e" not in text


def test_displays_are_short_and_say_what_they_leave_out() -> None:
    many = Sources(Source(n, "A", "https://a.example/") for n in range(1, 1001))
    assert repr(many).count("https://") == SHOWN_ROWS
    assert "800 more; to_pandas() has all" in repr(many)
    assert "800 more; to_pandas() has all" in many._repr_html_()
    assert many._repr_html_().count("<tr") == SHOWN_ROWS + 1
    assert "more;" not in repr(THREE) + THREE._repr_html_()
    assert len(repr(Source(1, "A" * 9999, "https://a.example", snippet="b" * 9999))) < 120
    assert repr(EMPTY) == "Sources(none)"
    assert "[11]" in repr(THREE) and "https://s.example/bay" in repr(THREE)


# --- gathering -------------------------------------------------------------------------------


def gathered(*found: dict[str, Any]) -> Sources:
    collector = SourceCollector()
    for source in found:
        collector.add(**source)
    return collector.sources()


A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"


def test_a_page_that_comes_three_times_is_one_source_with_all_that_was_said() -> None:
    collector = SourceCollector()
    assert collector.add(id=2, url=A, title="A")
    assert not collector.add(id=2, url=A, title="A")
    assert collector.add(id=2, url=A, title="Other", snippet="text", date="2025-03-02")
    assert not collector.add(url=A, title="Again", kind="fetch")
    (source,) = collector.sources()
    assert source == Source(2, "A", A, "a.example", dt.date(2025, 3, 2), snippet="text")


def test_numbers_are_kept_with_their_gaps_and_listed_in_order() -> None:
    sources = gathered({"id": 21, "url": C}, {"id": 3, "url": A}, {"id": 11, "url": B})
    assert sources["id"] == [3, 11, 21]
    assert sources.get(21).url == C  # type: ignore[union-attr]


def test_two_numbers_of_one_page_stay_two_sources() -> None:
    sources = gathered({"id": 1, "url": A}, {"id": 5, "url": A})
    assert sources["id"] == [1, 5]
    assert sources["url"] == [A, A]


def test_a_page_without_a_number_gets_one_above_all_others_and_no_marker_means_it() -> None:
    for kind in ("fetch", "annotation", "search"):
        sources = gathered({"url": B, "kind": kind}, {"id": 1, "url": A}, {"id": 7, "url": C})
        assert sources["id"] == [1, 7, 8]
        assert sources.by_id(8).url == B
        assert sources.get(8) is None
        assert sources[2:].get(8) is None
        assert pickle.loads(pickle.dumps(sources)).get(8) is None
        assert count_citations("So.[8][7]", sources)["n_cited"] == [0, 1, 0]


def test_where_the_service_numbers_nothing_a_marker_counts_the_pages() -> None:
    sources = gathered({"url": A, "kind": "fetch"}, {"url": B, "kind": "annotation"}, {"url": C})
    assert sources["id"] == [1, 2, 3]
    assert count_citations("So.[3][2]", sources)["n_cited"] == [0, 1, 1]


def test_a_number_that_is_taken_stays_with_its_first_page() -> None:
    sources = gathered({"id": 1, "url": A}, {"id": 1, "url": B, "title": "B"})
    assert [(source.id, source.url) for source in sources] == [(1, A), (2, B)]
    assert sources.get(1).url == A  # type: ignore[union-attr]
    assert sources.get(2) is None


def test_a_page_that_is_numbered_later_keeps_what_was_said_before() -> None:
    collector = SourceCollector()
    collector.add(url=A, title="A page", snippet="read in full", kind="fetch")
    assert collector.add(id=4, url=A)
    sources = collector.sources()
    assert [(s.id, s.title, s.snippet) for s in sources] == [(4, "A page", "read in full")]
    assert sources.get(4) is not None
    assert sources.fetched(0) == sources[0]


def test_an_address_that_comes_later_than_its_number_is_joined_to_it() -> None:
    sources = gathered({"id": 1, "title": "A"}, {"id": 1, "url": A})
    assert [(s.id, s.title, s.url, s.domain) for s in sources] == [(1, "A", A, "a.example")]


def test_fetched_pages_are_counted_from_0_in_the_order_in_which_they_were_read() -> None:
    sources = gathered(
        {"url": C, "kind": "fetch"}, {"id": 1, "url": A}, {"url": A, "kind": "fetch"}
    )
    assert sources.fetched(0).url == C  # type: ignore[union-attr]
    assert sources.fetched(1).url == A  # type: ignore[union-attr]
    assert sources.fetched(2) is None
    assert sources.fetched(-1) is None


def test_what_has_neither_address_nor_numbered_title_is_no_source() -> None:
    assert not gathered({}, {"id": 1}, {"title": "A"}, {"url": "  "}, {"url": 3, "title": "A"})
    assert not gathered({"id": True, "title": "A"}, {"id": "1", "title": "A"})


@pytest.mark.parametrize("id", [0, -1, True, "3", 3.0, None, MAX_ID + 1, 10**30])
def test_what_is_no_number_of_a_source_is_read_as_none(id: Any) -> None:
    sources = gathered({"id": 5, "url": A}, {"id": id, "url": B})
    assert sources["id"] == [5, 6]
    assert len(sources.to_pandas()) == 2


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Tom &amp; Jerry &lt;3", "Tom & Jerry <3"),
        ("  two\n lines\t", "two lines"),
        ("red \x1b[31m\x00\u202ealert", "red [31m alert"),
        ("&#x202e;over", "over"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("half \ud83d", "half"),
        ("", "a.example"),
        (None, "a.example"),
        (7, "a.example"),
    ],
)
def test_a_title_is_one_line_of_readable_text(given: Any, shown: str) -> None:
    assert gathered({"id": 1, "url": A, "title": given})[0].title == shown


@pytest.mark.parametrize(
    ("given", "date"),
    [
        ("2025-03-02", dt.date(2025, 3, 2)),
        (" 2025-03-02T23:30:00-05:00", dt.date(2025, 3, 2)),
        ("2025-02-30", None),
        ("March 2025", None),
        ("2025", None),
        ("", None),
        (None, None),
        (1740873600, None),
    ],
)
def test_a_date_is_what_an_iso_string_begins_with_or_none(given: Any, date: Any) -> None:
    assert parse_date(given) == date
    assert gathered({"id": 1, "url": A, "date": given, "last_updated": given})[0].updated == date


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://www.Example.org:8080/a", "example.org"),
        ("https://user:pw@docs.example.org./", "docs.example.org"),
        ("https://[2001:db8::1]/", "2001:db8::1"),
        ("https://[broken/", ""),
        ("not a url", ""),
        ("https://müller.example/", "müller.example"),
    ],
)
def test_a_domain_is_the_host_in_lower_case_without_www(url: str, domain: str) -> None:
    assert domain_of(url) == domain


def test_a_thousand_pages_that_nobody_numbered_are_gathered_without_growing_slow() -> None:
    collector = SourceCollector()
    began = time.process_time()
    for n in range(1, 20_001):
        collector.add(id=n, url=f"https://a.example/{n}")
        collector.add(url=f"https://b.example/{n}")
    assert len(collector.sources()) == 40_000
    assert time.process_time() - began < 5


WIRE_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats()
FOUND = st.fixed_dictionaries(
    {},
    optional={
        "id": WIRE_VALUES | st.integers(1, 4),
        "url": WIRE_VALUES | st.sampled_from([A, B, C]),
        "title": WIRE_VALUES,
        "snippet": WIRE_VALUES,
        "date": WIRE_VALUES | st.dates().map(str),
        "last_updated": WIRE_VALUES,
        "kind": st.sampled_from(["search", "fetch", "annotation"]),
    },
)


@given(st.lists(FOUND, max_size=12))
@settings(max_examples=100, deadline=None)
def test_whatever_a_service_sends_gives_a_table_whose_numbers_are_its_own(
    found: list[dict[str, Any]],
) -> None:
    collector = SourceCollector()
    for source in found:
        collector.add(**source)
    sources = collector.sources()
    ids = sources["id"]
    assert ids == sorted(set(ids))
    assert len(sources.to_pandas()) == len(sources)
    for source in sources:
        assert sources.by_id(source.id) is source
    # What has neither an address nor a title is no page, whatever its number.
    pages = [
        s
        for s in found
        if (isinstance(s.get("url"), str) and s["url"].strip()) or isinstance(s.get("title"), str)
    ]
    named = {s["id"] for s in pages if type(s.get("id")) is int and 0 < s["id"] <= MAX_ID}
    named &= set(ids)
    if named:
        assert {i for i in ids if sources.get(i)} == named
    # told twice, nothing is new
    assert not any(collector.add(**source) for source in found)
    assert collector.sources() == sources

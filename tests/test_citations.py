"""Which source each marker means, and for which sentence."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.citations import Citation, count_citations, find_citations
from ipyperplexity.sources import Source, Sources
from ipyperplexity.wire.source_collector import SourceCollector

DUNE = Source(1, "Dune", "https://d.example", "d.example")
SEA = Source(3, "Sea", "https://s.example", "s.example")
SOURCES = Sources([DUNE, SEA])


def test_a_citation_names_its_source_its_place_and_its_sentence() -> None:
    text = "The dune is tall.[1] The sea is wide.[3]"
    first, second = find_citations(text, SOURCES)
    assert first == Citation(1, 17, 20, "The dune is tall.[1]", DUNE)
    assert second.source is SEA
    assert second.sentence == "The sea is wide.[3]"
    assert [text[c.start : c.end] for c in (first, second)] == ["[1]", "[3]"]


def test_a_marker_of_two_numbers_gives_two_citations_at_one_place() -> None:
    one, two = find_citations("So it is.[1, 3]", SOURCES)
    assert (one.source, two.source) == (DUNE, SEA)
    assert (one.start, one.end) == (two.start, two.end)


def test_an_unknown_number_is_kept_without_a_source() -> None:
    (citation,) = find_citations("So it is.[7]", SOURCES)
    assert (citation.id, citation.source, citation.by_position) == (7, None, False)


def test_code_links_and_years_cite_nothing() -> None:
    assert find_citations("`a[1]` and [text](https://x.example) in [2024]", SOURCES) == ()
    assert find_citations("", SOURCES) == ()


def test_web_markers_mean_the_fetched_pages_by_position_and_say_so() -> None:
    collector = SourceCollector()
    collector.add(id=1, url="https://d.example", title="Dune")
    collector.add(url="https://read.example", title="Read", kind="fetch")
    sources = collector.sources()
    found, beyond = find_citations("Read.[web:0] Not.[web:1]", sources)
    assert found.source is not None and found.source.title == "Read"
    assert found.by_position and found.id == 2
    assert (beyond.id, beyond.source, beyond.by_position) == (None, None, True)
    assert count_citations("Read.[web:0]", sources)["n_cited"] == [0, 1]


def test_counting_says_how_often_each_source_is_cited() -> None:
    counted = count_citations("A.[1] B.[1][3] C.[1]", SOURCES)
    assert counted["n_cited"] == [3, 1]
    assert counted["cited"] == [True, True]
    assert count_citations("A.", counted)["n_cited"] == [0, 0]


def test_citations_compare_by_value_and_can_be_pickled() -> None:
    found = find_citations("A.[1]", SOURCES)
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({*found, *find_citations("A.[1]", SOURCES)}) == 1


@pytest.mark.parametrize("end", [".[1]", ". [1]", "[1].", "[1]"])
def test_a_marker_belongs_to_the_sentence_that_it_closes(end: str) -> None:
    (citation,) = find_citations(f"First one. It holds{end}", SOURCES)
    assert citation.sentence.startswith("It holds")


@given(st.text(st.sampled_from("aB .[]13,-:web`\n*!("), max_size=60))
@settings(max_examples=200, deadline=None)
def test_every_citation_stands_where_it_says(text: str) -> None:
    for citation in find_citations(text, SOURCES):
        marker = text[citation.start : citation.end]
        assert marker.startswith("[") and marker.endswith("]")
        if citation.id is not None and not citation.by_position and "-" not in marker:
            assert str(citation.id) in marker

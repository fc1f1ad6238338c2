"""Several rounds are one answer: every marker keeps its meaning, every page and token is there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.answer import Image, Usage
from ipyperplexity.citations import find_citations
from ipyperplexity.rounds import Rounds
from ipyperplexity.sources import Source, Sources


def pages(*ids: int, at: str) -> Sources:
    return Sources([Source(id, f"{at}{id}", f"https://{at}.example/{id}") for id in ids])


def told(*rounds: tuple[str, Sources]) -> tuple[str, Sources]:
    """Return text and sources of an answer that has these rounds."""
    known, text = Rounds(), ""
    for written, own in rounds[:-1]:
        text += written
        known.end(text, own, (), Usage())
    written, own = rounds[-1]
    text += written
    return known.settle(text, own), known.sources(own)


def meant(text: str, sources: Sources) -> list[str | None]:
    return [c.source.url if c.source else None for c in find_citations(text, sources)]


def test_one_round_is_left_as_it_is() -> None:
    own = pages(1, at="a")
    text, sources = told(("One.[1]", own))
    assert text == "One.[1]" and sources is own


def test_numbers_that_nobody_else_has_stay() -> None:
    text, sources = told(("One.[1][2]", pages(1, 2, at="a")), (" Two.[11]", pages(11, at="b")))
    assert text == "One.[1][2] Two.[11]"
    assert [source.id for source in sources] == [1, 2, 11]


def test_a_page_that_comes_again_is_there_once() -> None:
    again = Sources(
        [Source(5, "One", "https://a.example/1"), Source(1, "Two", "https://b.example")]
    )
    text, sources = told(("One.[1]", pages(1, at="a")), (" Again.[5] Two.[1]", again))
    assert text == "One.[5] Again.[5] Two.[1]"
    assert sources["url"] == ["https://b.example", "https://a.example/1"]
    same = told(("One.[1]", pages(1, at="a")), (" Again.[1]", pages(1, at="a")))
    assert same[0] == "One.[1] Again.[1]" and len(same[1]) == 1


def test_ranges_lists_and_places_of_fetched_pages_follow_too() -> None:
    first = Sources(pages(1, 2, 3, at="a"), fetched=[2, 3])
    last = Sources(pages(1, 2, 3, at="b"), fetched=[3])
    text, sources = told(("A.[1-3] B.[1, 3] C.[web:0] D.[web:1]", first), (" E.[web:0][1]", last))
    assert text == "A.[4, 5, 6] B.[4, 6] C.[web:1] D.[web:2] E.[web:0][1]"
    assert [url and url[8:] for url in meant(text, sources)] == [
        "a.example/1", "a.example/2", "a.example/3", "a.example/1", "a.example/3",
        "a.example/2", "a.example/3", "b.example/3", "b.example/1",
    ]  # fmt: skip


def test_two_numbers_of_one_page_become_one() -> None:
    twice = Sources([Source(n, "Same", "https://s.example") for n in (1, 2)])
    last = Sources([*pages(1, 2, at="b"), Source(3, "Same", "https://s.example")])
    text, sources = told(("One.[1, 2]", twice), (" Two.[1]", last))
    assert text == "One.[3] Two.[1]" and len(sources) == 3


def test_numbers_of_ours_stay_within_what_a_marker_can_be() -> None:
    far = Sources([Source(5000, "Far", "https://f.example"), *pages(7, at="b")])
    text, sources = told(("One.[7]", pages(7, at="a")), (" Two.[7]", far))
    assert text == "One.[8] Two.[7]"
    assert sources.by_id(8).title == "a7"


def test_a_number_above_all_markers_is_left_to_who_has_it() -> None:
    far = Sources([Source(1000, "Far", "https://f.example"), *pages(7, 998, at="b")])
    first = pages(7, 998, at="a")
    text, sources = told(("One.[7]", first), (" Two.[7]", far))
    assert text == "One.[999] Two.[7]"
    assert [source.id for source in sources] == [7, 998, 999, 1000, 1001]


def test_settling_again_changes_nothing() -> None:
    rounds = Rounds()
    rounds.end("One.[1]", pages(1, at="a"), (), Usage())
    text = rounds.settle("One.[1] Two.[1]", pages(1, at="b"))
    assert rounds.settle(text, pages(1, at="b")) == text == "One.[2] Two.[1]"
    assert text[rounds.start :] == " Two.[1]"


def test_usage_is_added_up_as_far_as_it_is_known() -> None:
    rounds = Rounds()
    assert rounds.total(Usage()) == Usage()
    rounds.end("", Sources(), (), Usage(10, None, 12, cost_usd=0.5))
    rounds.end("", Sources(), (), Usage(1, 2, 3))
    assert rounds.total(Usage(cost_usd=0.25)) == Usage(11, 2, 15, None, None, 0.75)


def test_images_are_there_once() -> None:
    rounds = Rounds()
    rounds.end("", Sources(), (Image("a"), Image("b")), Usage())
    assert [image.url for image in rounds.all_images((Image("b"), Image("c")))] == ["a", "b", "c"]


IDS = st.lists(st.integers(1, 12), unique=True, max_size=6)
ROUNDS = st.lists(st.tuples(IDS, IDS, IDS), min_size=1, max_size=4)


@given(ROUNDS)
def test_every_marker_means_what_it_meant_in_its_round(made: list[tuple[list[int], ...]]) -> None:
    rounds: list[tuple[str, Sources]] = []
    expected: list[str | None] = []
    for number, (ids, cited, fetched) in enumerate(made):
        # Every second page of a round is one that other rounds have, too.
        own = Sources(
            [
                Source(id, f"t{id}", f"https://{'shared' if id % 2 else f'r{number}'}.example/{id}")
                for id in ids
            ],
            fetched=[id for id in fetched if id in ids],
        )
        known = [id for id in cited if id in ids]
        web = range(len(own._fetched))
        text = "".join(f" It is so.[{id}]" for id in known) + "".join(
            f" Read.[web:{n}]" for n in web
        )
        rounds.append((text, own))
        expected += meant(text, own)
    text, sources = told(*rounds)
    assert None not in expected and meant(text, sources) == expected
    assert len({source.id for source in sources}) == len(sources)
    assert {source.url for _, own in rounds for source in own} == set(sources["url"])

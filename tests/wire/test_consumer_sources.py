"""Sources of perplexity.ai come once, in order, under the numbers that markers mean."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity.events import (
    SourcesFound,
    TextDelta,
    TextReplaced,
)
from ipyperplexity.wire import consumer_reading
from tests.wire.consumer_streams import (
    FINAL,
    Record,
    completed,
    diff_block,
    page,
    patch,
    pending,
    read,
    source_block,
    step,
    steps,
    text_block,
    urls,
)


def test_a_page_named_twice_is_kept_once_and_its_number_stays() -> None:
    entries = [
        page("https://a.test/path", "First"),
        page("https://a.test/path/", "Second"),
        page("https://b.test/"),
        page("HTTPS://A.TEST/path"),
        page("https://a.test/PATH"),
    ]
    seen = read([completed(text_block(answer="So [2][3]."), source_block(*entries))])
    assert urls(seen) == [
        (1, "https://a.test/path"),
        (3, "https://b.test/"),
        (5, "https://a.test/PATH"),
    ]
    assert seen.sources[0].title == "First"
    assert seen.text == "So [1][3]." and seen.end.warnings == ()


def test_markers_of_a_repeat_become_those_of_the_page_that_is_kept() -> None:
    entries = source_block(page("https://a.test"), page("https://a.test/"), page("https://b.test"))
    for answer, text in (
        ("A [2]. B [1, 2, 3]. C [1-3]. D [3].", "A [1]. B [1, 3]. C [1, 3]. D [3]."),
        ("In code `x[2]` it stays, as in total[2] = 5.", None),
        ("<think>Hm [2].</think>So [2].", "So [1]."),
        ("So [3].", None),
    ):
        seen = read([pending(text_block([answer], 0)), completed(entries)])
        assert seen.text == (answer if text is None else text)
        assert bool(seen.of(TextReplaced)) is (text is not None)


def test_markers_of_an_answer_that_fails_follow_too() -> None:
    entries = source_block(page("https://a.test"), page("https://a.test/"))
    seen = read([pending(entries, text_block(["So [2]."], 0)), {"error_message": "broken"}])
    assert seen.error is not None and seen.text == "So [1]."


def test_a_replaced_text_has_its_markers_renumbered_as_it_stands() -> None:
    entries = source_block(page("https://a.test"), page("https://a.test/"))
    seen = read(
        [pending(entries, text_block(["Old [2]."], 0)), completed(text_block(answer="New [2]."))]
    )
    assert seen.text == "New [1]."


def test_sources_are_read_with_title_date_and_snippet() -> None:
    entry = page(
        "https://www.a.test/x",
        "A &amp; B\n",
        timestamp="2026-03-02T10:00:00Z",
        snippet="S",
        meta_data=5,
    )
    (source,) = read([completed(source_block(entry))]).sources
    assert (source.title, source.domain, source.snippet, source.kind) == (
        "A & B",
        "a.test",
        "S",
        "search",
    )
    assert str(source.published) == "2026-03-02"
    (bare,) = read([completed(source_block({"url": "https://a.test"}))]).sources
    assert bare.title == "a.test" and bare.published is None and bare.snippet is None


def test_sources_without_an_address_are_all_kept() -> None:
    seen = read([completed(source_block({"name": "N"}, {"name": "N"}, {}))])
    assert [source.title for source in seen.sources] == ["N", "N", "Untitled source"]


def test_damaged_entries_do_not_shift_the_numbers() -> None:
    seen = read([completed(source_block(None, 5, page("https://c.test"), "https://d.test"))])
    assert urls(seen) == [(3, "https://c.test"), (4, "https://d.test")]


def test_f27_a_source_list_grows_over_records_without_repeats() -> None:
    first = {"status": "PENDING", "sources_list": [{"title": "A", "url": "https://a.test"}]}
    again = {"status": "PENDING", "sources_list": [{"title": "A", "url": "https://a.test/"}]}
    seen = read([first, again, completed(text="x")])
    assert urls(seen) == [(1, "https://a.test")] and seen.sources[0].title == "A"


def test_a_source_list_survives_records_without_it_and_accumulates() -> None:
    lists = [
        [{"title": "A", "url": "https://a.test", "date": "2026-01-02"}],
        None,
        [{"url": "https://b.test"}],
    ]
    seen = read(
        [
            *({"status": "PENDING", "sources_list": entries} for entries in lists),
            completed(text="x"),
        ]
    )
    assert urls(seen) == [(1, "https://a.test"), (2, "https://b.test")]
    assert str(seen.sources[0].published) == "2026-01-02"
    assert len(seen.of(SourcesFound)) == 2


def test_the_block_of_web_results_goes_before_the_source_list() -> None:
    seen = read(
        [completed(source_block(page("https://a.test")), sources_list=[page("https://b.test")])]
    )
    assert urls(seen) == [(1, "https://a.test")]
    seen = read([completed(source_block(), sources_list=[page("https://b.test")])])
    assert urls(seen) == [(1, "https://b.test")]


def test_two_blocks_of_sources_are_one_list_and_markers_count_the_first() -> None:
    mode = {
        "intended_usage": "sources_answer_mode",
        "sources_mode_block": {
            "web_results": [page("https://b.test"), page("https://a.test/"), page("https://c.test")]
        },
    }
    seen = read([completed(mode, source_block(page("https://a.test"), page("https://b.test")))])
    assert urls(seen) == [(1, "https://a.test"), (2, "https://b.test"), (3, "https://c.test")]
    assert seen.sources.get(2) is not None and seen.sources.get(3) is None
    alone = read([completed(mode)])
    assert alone.sources.get(3) is not None and len(alone.sources) == 3


@pytest.mark.parametrize(
    "record",
    [
        {"web_results": [page("https://a.test")]},
        {"text": steps(FINAL, step("SEARCH_RESULTS", web_results=[page("https://x.test")]))},
        {"text": steps(step("SEARCH_RESULTS", web_results=[page("https://a.test")]))},
    ],
)
def test_sources_outside_the_blocks_are_found(record: Record) -> None:
    seen = read([completed(**record)])
    assert len(seen.sources) == 1 and seen.sources[0].id == 1
    assert seen.sources[0].url in ("https://a.test", "https://f.test")


def test_sources_are_told_as_they_come_and_only_when_they_change() -> None:
    entries = [page(f"https://{name}.test") for name in "abc"]
    records = [pending(source_block(*entries[:n]), text_block(["x"], n)) for n in (1, 1, 2, 3, 3)]
    seen = read([*records, completed()])
    assert [len(event.sources) for event in seen.of(SourcesFound)] == [1, 2, 3]


def test_what_nobody_sees_of_a_source_is_no_news() -> None:
    records = [pending(source_block(page("https://a.test", meta_data={"n": n}))) for n in range(3)]
    assert len(read([*records, completed(text="x")]).of(SourcesFound)) == 1


def test_sources_that_come_again_unchanged_are_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    original = consumer_reading.read_sources

    def counting(numbered: Any, others: Any) -> Any:
        calls.append(len(numbered))
        return original(numbered, others)

    monkeypatch.setattr(consumer_reading, "read_sources", counting)
    entries = [page(f"https://{n}.test") for n in range(5)]
    more = diff_block(
        patch("/web_results/-", page("https://x.test")),
        usage="web_results",
        block="web_result_block",
    )
    read([*(pending(source_block(*entries)) for _ in range(50)), pending(more), completed()])
    assert calls == [5, 6]


def test_sources_without_text_are_an_answer_and_no_sentence_is_invented() -> None:
    seen = read([completed(source_block(page("https://a.test")))])
    assert seen.text == "" and seen.end.status == "completed" and len(seen.sources) == 1


def test_f11_an_empty_answer_stays_empty() -> None:
    seen = read([completed(text_block([], answer=""))])
    assert seen.text == "" and not seen.of(TextDelta) and seen.end.status == "completed"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.test", "https://a.test/", True),
        ("https://a.test/p/", " https://a.test/p ", True),
        ("HTTPS://A.test/p", "https://a.TEST/p", True),
        ("https://a.test:443/p", "https://a.test/p", True),
        ("https://a.test/?b=1/", "https://a.test/?b=1", True),
        ("https://a.test?b=1", "https://a.test/?b=1", True),
        ("https://bücher.test/", "https://xn--bcher-kva.test", True),
        ("https://a.test/é", "https://a.test/%C3%A9", True),
        ("not an ADDRESS/", "NOT an address", True),
        ("http://[bad", "HTTP://[BAD", True),
        ("https://a.test/p", "https://a.test/P", False),
        ("https://a.test/?b=1", "https://a.test/?B=1", False),
        ("https://a.test/#x", "https://a.test/#y", False),
        ("http://a.test", "https://a.test", False),
        ("https://a.test/p//", "https://a.test/p", False),
        ("https://a.test:8443/p", "https://a.test/p", False),
        ("http://a.test:99999/", "http://A.test:99999", True),
    ],
)
def test_two_addresses_are_one_page_or_two(one: str, other: str, same: bool) -> None:
    seen = read([completed(source_block(page(one), page(other)))])
    assert len(seen.sources) == (1 if same else 2)
    assert seen.sources[0].url == one.strip()

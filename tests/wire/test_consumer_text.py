"""An answer of perplexity.ai is told once and whole, wherever in the stream it stands."""

from __future__ import annotations

import json

import pytest

from ipyperplexity import errors
from ipyperplexity.events import (
    Fetching,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
)
from ipyperplexity.wire import consumer_text
from tests.wire.consumer_streams import (
    FINAL,
    Record,
    completed,
    diff_block,
    failed,
    page,
    patch,
    pending,
    read,
    source_block,
    step,
    steps,
    text_block,
    urls,
    workflow,
)

# --- where the text is (consumer-web 2.4, 2.8, 2.9) ------------------------------------------------


def test_f1_blocks_without_text_are_an_answer() -> None:
    blocks = text_block(answer="Forty-two [1]"), source_block(page("https://a.test/"))
    seen = read([{"status": "COMPLETED", "final": True, "blocks": list(blocks)}])
    assert seen.text == "Forty-two [1]" and urls(seen) == [(1, "https://a.test/")]
    assert [type(event) for event in seen.events[:3]] == [Started, SourcesFound, TextDelta]


def test_f3_chunks_over_several_records_are_joined() -> None:
    seen = read([
        pending(text_block(["One "], 0)),
        pending(text_block(["two "], 1)),
        {"status": "COMPLETED", "final": True, "blocks": [text_block(["three"], 2)]},
    ])  # fmt: skip
    assert seen.text == "One two three"
    assert [event.text for event in seen.of(TextDelta)] == ["One ", "two ", "three"]


def test_markdown_goes_before_ask_text_and_that_before_text() -> None:
    markdown = text_block(["from markdown"], 0, usage="ask_text_0_markdown")
    ask_text = text_block(answer="from ask_text")
    assert read([completed(ask_text, markdown, text="from text")]).text == "from markdown"
    assert read([completed(ask_text, text="from text")]).text == "from ask_text"
    assert read([completed(text="from text")]).text == "from text"


def test_of_several_markdown_blocks_the_first_with_text_is_read() -> None:
    one, two = (
        text_block(answer=t, usage=f"ask_text_{n}_markdown") for n, t in enumerate(("one", "two"))
    )
    assert read([completed(one, two)]).text == "one"
    blank = text_block(answer=" ", usage="ask_text_0_markdown")
    assert read([completed(blank, two)]).text == "two"


def test_the_last_answer_is_authoritative_and_voids_what_was_told() -> None:
    seen = read(
        [
            pending(text_block(["So [3]", " it is."], 0)),
            completed(text_block(answer="So [1] it is.")),
        ]
    )
    assert seen.text == "So [1] it is."
    assert seen.of(TextReplaced) == [TextReplaced("So [1] it is.")]


def test_an_answer_that_only_goes_on_is_not_told_anew() -> None:
    seen = read([pending(text_block(["So"], 0)), completed(text_block(answer="So it is."))])
    assert seen.text == "So it is." and not seen.of(TextReplaced)


def test_the_same_answer_in_another_block_is_not_told_anew() -> None:
    seen = read([
        pending(text_block(["So ", "it"], 0)),
        pending(text_block(["So"], 0, usage="ask_text_0_markdown")),
        pending(text_block([" it is."], 1, usage="ask_text_0_markdown")),
        completed(text_block(answer="So it is.")),
    ])  # fmt: skip
    assert seen.text == "So it is." and not seen.of(TextReplaced)


def test_chunks_that_change_places_are_told_anew() -> None:
    move = {"op": "move", "from": "/chunks/0", "path": "/chunks/2"}
    begun = pending(diff_block(patch("", {"chunks": ["a", "b", "a"]}, "replace")))
    seen = read([begun, pending(diff_block(move)), completed()])
    assert seen.text == "baa" and seen.error is None


def test_a_form_that_was_never_shown_is_compared_from_its_beginning() -> None:
    given = consumer_text.GivenText()
    assert list(given.show("a", ["x", "y"])) == [TextDelta("xy")]
    assert list(given.show("b", ["z", "y"], changed_from=1)) == [TextReplaced("zy")]


def test_the_answers_own_blocks_go_before_the_workflow() -> None:
    assert read([completed(workflow(text="from workflow"), text_block(answer="own"))]).text == "own"


def test_text_that_was_told_is_never_replaced_by_nothing() -> None:
    seen = read([pending(text_block(["Yes"], 0)), completed(text_block([], 0, ""))])
    assert seen.text == "Yes" and seen.error is None


def test_a_shorter_last_answer_counts() -> None:
    seen = read([pending(text_block(["Yes", " and no"], 0)), completed(text_block(answer="Yes"))])
    assert seen.text == "Yes"


def test_an_answer_that_only_the_workflow_has_is_streamed() -> None:
    chunks = "/steps/1/items/0/payload/text_payload/chunks"
    root = {"usage": "workflow_root", "block": "workflow_block"}
    seen = read([
        pending(workflow(chunks=["Os"], text="", is_streaming=True)),
        pending(diff_block(patch(f"{chunks}/1", "lo is"), **root)),
        pending(diff_block(patch(f"{chunks}/-", " it."), patch("/steps/1/status", "DONE"), **root)),
        completed(workflow(chunks=["Oslo is it."], text="Oslo is it.", is_streaming=False)),
    ])  # fmt: skip
    assert [event.text for event in seen.of(TextDelta)] == ["Os", "lo is", " it."]
    assert seen.text == "Oslo is it." and len(seen.sources) == 0


def test_answers_of_several_workflow_items_are_paragraphs() -> None:
    block = workflow(text="One.")
    block["workflow_block"]["steps"].append(block["workflow_block"]["steps"][1])
    assert read([completed(block)]).text == "One.\n\nOne."


def test_the_steps_in_text_are_read_and_never_shown() -> None:
    searching = step("SEARCH_WEB", queries=[{"engine": "web", "query": "why"}, "how"])
    results = step("SEARCH_RESULTS", web_results=[page("https://s.test")])
    reading = step("READ_RESULTS", urls=["https://s.test"])
    seen = read([
        pending(text=steps(searching)),
        pending(text=steps(searching, results, reading, step("THOUGHT", thought="Hm."))),
        completed(text=steps(searching, results, reading, FINAL)),
    ])  # fmt: skip
    assert seen.text == "So [1]." and urls(seen) == [(1, "https://f.test")]
    assert [event.queries for event in seen.of(Searching)] == [("why", "how")]
    assert [event.urls for event in seen.of(Fetching)] == [("https://s.test",)]
    assert seen.reasoning == "Hm."


@pytest.mark.parametrize(
    "final",
    [
        {"answer": "So."},
        {"answer": json.dumps({"answer": "So."})},
        {
            "answer": json.dumps(
                {"answer": "", "structured_answer": [{"type": "markdown", "text": "So."}]}
            )
        },
        {"answer": json.dumps({"structured_answer": [{"chunks": ["S", "o."]}]})},
        {"answer": json.dumps({"answer": None, "web_results": [], "chunks": ["S", "o."]})},
    ],
)
def test_every_shape_of_the_last_step_is_text(final: Record) -> None:
    assert read([completed(text=steps(step("FINAL", **final)))]).text == "So."


@pytest.mark.parametrize(
    "text",
    [
        steps(step("INITIAL_QUERY", query="q")),
        steps(step("FINAL"))[:-4],
        '[{"step_type": "FINAL", "content": "no object"}]',
        '{"answer": "cut off',
        steps(step("FINAL", answer='{"answer": "cut off')),
    ],
)
def test_steps_without_an_answer_are_no_text(text: str) -> None:
    seen = read([completed(text=text)])
    assert seen.text == "" and seen.error is None


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '[{"name": "x"}]', "[1] says so.", "{curly}", "[]", "5"]
)
def test_an_answer_that_is_json_because_it_was_asked_for_is_text(text: str) -> None:
    assert read([completed(text=text)]).text == text


def test_an_object_in_text_is_read_like_the_last_step() -> None:
    seen = read(
        [completed(text=json.dumps({"answer": "So.", "web_results": [page("https://f.test")]}))]
    )
    assert seen.text == "So." and urls(seen) == [(1, "https://f.test")]


def test_thinking_in_the_text_becomes_reasoning() -> None:
    seen = read([
        pending(text_block(["<thi", "nk>Hm."], 0)),
        pending(text_block(["</think>Yes [2]"], 2)),
        completed(text_block(answer="<think>Hm.</think>Yes [1]")),
    ])  # fmt: skip
    assert seen.text == "Yes [1]" and seen.reasoning == "Hm."


def test_what_was_only_thought_is_no_text_to_take_back() -> None:
    seen = read(
        [pending(text_block(["<think>Hm.</think>"], 0)), completed(text_block(answer="Yes"))]
    )
    assert seen.text == "Yes" and seen.reasoning == "Hm." and not seen.of(TextReplaced)


def test_what_was_held_back_is_kept_when_the_stream_breaks_off() -> None:
    seen = read([pending(text_block(["<thi"], 0))])
    assert seen.text == "<thi" and failed(seen, errors.StreamError)


def test_a_goal_that_is_worded_anew_is_not_told_again() -> None:
    def plan(*goals: str, first: int = 0) -> Record:
        found = [{"id": n, "description": goal} for n, goal in enumerate(goals, first)]
        return {"intended_usage": "plan", "plan_block": {"goals": found}}

    seen = read([
        pending(plan("Look for it.", "Compare.")),
        pending(plan("Search for it.", "Compare.")),
        completed(plan("Look for it.", "Compare.", first=7)),
    ])  # fmt: skip
    assert seen.reasoning == "Look for it.\nCompare."


def test_the_goals_of_the_plan_are_reasoning_told_once() -> None:
    def plan(usage: str, *goals: str) -> Record:
        found = [{"id": n, "description": goal} for n, goal in enumerate(goals)]
        searching = {"step_type": "SEARCH_WEB", "search_web_content": {"queries": [{"query": "q"}]}}
        return {"intended_usage": usage, "plan_block": {"goals": found, "steps": [searching]}}

    seen = read([
        pending(plan("plan", "Look for")),
        pending(plan("plan", "Look for it."), plan("pro_search_steps", "Look for it.")),
        completed(plan("plan", "Look for it.", "Compare."), text_block(answer="Yes")),
    ])  # fmt: skip
    assert seen.reasoning == "Look for it.\nCompare."
    assert [event.queries for event in seen.of(Searching)] == [("q",)]


# --- Deep Research ---------------------------------------------------------------------------------


def assets(report: str) -> Record:
    block = {"assets": [{"research_report": {"source_content": report}}]}
    return {"intended_usage": "unified_assets", "unified_assets_block": block}


def test_f14_the_report_is_the_text_and_its_cover_note_is_kept_apart() -> None:
    seen = read([completed(text_block(answer="Report ready."), assets("# R\nbody"))])
    assert seen.text == "# R\nbody" and seen.reasoning == "Report ready."
    assert "report" in seen.end.warnings[0]


def test_a_report_takes_the_place_of_a_note_that_came_first_and_then_grows() -> None:
    path = "/assets/0/research_report/source_content"
    root = {"usage": "unified_assets", "block": "unified_assets_block"}
    seen = read([
        pending(text_block(["Report ", "ready."], 0)),
        pending(assets("# R")),
        pending(diff_block(patch(path, "# R\nbo", "replace"), **root)),
        pending(diff_block(patch(path, "# R\nbody", "replace"), **root)),
        completed(),
    ])  # fmt: skip
    assert seen.of(TextReplaced) == [TextReplaced("# R")]
    assert [event.text for event in seen.of(TextDelta)] == ["Report ready.", "\nbo", "dy"]
    assert seen.text == "# R\nbody" and seen.reasoning == "Report ready."


def test_a_report_in_the_workflow_or_in_the_steps_is_found_too() -> None:
    asset = {"research_report": {"source_content": "# W"}}
    item = {"payload": {"sources_payload": {"assets": [asset]}}}
    block = {"intended_usage": "workflow_root", "workflow_block": {"steps": [{"items": [item]}]}}
    assert read([completed(block)]).text == "# W"
    told = steps(step("RESEARCH_ANSWER", answer="# S"), step("FINAL", answer="Ready."))
    assert read([completed(text=told)]).text == "# S"


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_that_asks_back_is_an_error_with_its_questions(ended: bool) -> None:
    questions = [{"question_text": "Which year?"}, "Which country?"]
    record = pending(text=steps(step("RESEARCH_CLARIFYING_QUESTIONS", questions=questions)))
    error = failed(read([record, *([completed()] if ended else [])]), errors.InvalidRequestError)
    assert error.field == "question" and error.hint is not None
    assert "- Which year?\n- Which country?" in error.hint


def test_a_run_that_asks_back_and_then_answers_is_an_answer_with_a_warning() -> None:
    asked = step("RESEARCH_CLARIFYING_QUESTIONS", questions=["Which year?"])
    seen = read([pending(text=steps(asked)), completed(text=steps(asked, FINAL))])
    assert seen.text == "So [1]." and "Which year?" in seen.end.warnings[0]

"""What is asked about each row, and what is said when a template or a row is not right."""

from __future__ import annotations

import datetime as dt
import gc
import string
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.batch.prompt import MAX_CHARACTERS, Prompt
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import Question
from ipyperplexity.tabular.table_rows import read_rows

COLUMNS = ("company", "year founded", "price", "a:b")
ROW = {"company": "Lego", "year founded": 1932, "price": 2.5, "a:b": "x"}


def ask(template: Any, row: dict[str, Any] = ROW) -> Any:
    return Prompt.of(template, tuple(row)).question(row)


def write(value: Any, spec: str = "") -> str:
    """What stands in the question for a value."""
    text = ask(f"<{{x{spec}}}>", {"x": value, "y": 1})
    assert text[0] == "<" and text[-1] == ">"
    return text[1:-1]


def refusal(template: Any, columns: tuple[str, ...] = COLUMNS) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        Prompt.of(template, columns)
    assert caught.value.field == "prompt"
    assert caught.value.__context__ is None
    return caught.value


def row_error(prompt: Any, row: dict[str, Any] = ROW) -> InvalidRequestError:
    checked = Prompt.of(prompt, tuple(row))
    with pytest.raises(InvalidRequestError) as caught:
        checked.question(row)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return caught.value


# --- templates -----------------------------------------------------------------------------------


def test_columns_in_braces_become_the_rows_values():
    assert ask("Who runs {company}, of {year founded}?") == "Who runs Lego, of 1932?"
    assert ask("{ company }{company}{a:b}") == "LegoLegox"


def test_doubled_braces_are_braces():
    assert ask('Answer as {{"name": "{company}"}}') == 'Answer as {"name": "Lego"}'
    assert ask("{{{company}}}") == "{Lego}"
    assert ask("{{company}} {company}") == "{company} Lego"


def test_everything_else_stays_as_it_is():
    text = "$5 % \\n 'x' [0] \t\n\x01 ünï "
    assert ask(text + "{company}") == text + "Lego"


def test_a_value_is_never_taken_for_a_template():
    assert ask("{x}", {"x": "{company} {{ %s"}) == "{company} {{ %s"


def test_a_prompt_says_which_columns_it_names():
    assert Prompt.of("{company} {price:.2f} {company}", COLUMNS).columns == ("company", "price")
    assert Prompt.of(str, COLUMNS).columns == ()


def test_values_can_be_formatted():
    assert ask("{price:.2f} {price:>6} {year founded:,}") == "2.50    2.5 1,932"
    assert write(dt.date(2024, 3, 1), ":%d %B %Y") == "01 March 2024"
    assert write(Decimal("2.345"), ":.1f") == "2.3"
    assert write(0.256, ":.0%") == "26%"
    assert write("Montana", ":.3") == "Mon"
    assert write(["a", "b", "c"], ":.4") == "a, b"
    assert write(True, ":>4") == " yes"
    assert write(2, ":.2f") == "2.00"


def test_a_column_with_a_colon_in_its_name_can_be_formatted_too():
    assert ask("{a:b} {a:b:>3}") == "x   x"
    assert ask("{a:>3} {a:>3:>2}", {"a": 1, "a:>3": 2}) == "2  2"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("Who runs {compny}?", "did you mean 'company'?"),
        ("Who runs {COMPANY}?", "did you mean 'company'?"),
        ("Who runs {company.name}?", "no column 'company.name'"),
        ("Who runs {company[0]}?", "no column 'company[0]'"),
        ("Who runs {company!r}?", "no column 'company!r'"),
        ("Who runs {}?", "no column ''"),
        ("Who runs {0}?", "no column '0'"),
        ("Who runs {company", "'{' at character 10 is not closed"),
        ("Who runs company}", "'}' at character 17 is not opened"),
        ("Who runs {a{company}}", "'{' at character 10 is not closed"),
        ("{price:{company}}", "'{' at character 1 is not closed"),
        ("{{company}", "'}' at character 10 is not opened"),
        ("Who runs Lego?", "names no column"),
        ("", "names no column"),
        ("{price:.2q}", "'.2q' is no format specification"),
        ("{price:99999999}", "wider than a question may be"),
    ],
)
def test_a_template_that_fits_no_row_is_refused_at_once(template: str, said: str):
    assert said in refusal(template).message


def test_a_refused_template_says_what_the_next_step_is():
    assert "{company}, {year founded}" in refusal("{x}").hint
    assert "twice: {{ and }}" in refusal('{"a": 1} {company}').hint
    assert "the column is {company}" in refusal("Who runs {{company}}?").hint
    assert "{company}" in refusal("company").hint
    assert "and 80 more" in refusal("{x}", tuple(map(str, range(100)))).hint


@pytest.mark.parametrize("prompt", [3, b"{company}", ["{company}"], Question("Who?")])
def test_what_is_neither_text_nor_a_function_is_refused(prompt: Any):
    assert "a function of a row" in refusal(prompt).message


def test_without_columns_as_of_an_empty_list_any_may_be_named():
    prompt = Prompt.of("Who runs {company}, since {year}?", read_rows([]).columns)
    assert prompt.columns == ("company", "year")
    assert "not closed" in refusal("Who runs {company", ()).message
    assert "names no column" in refusal("Who?", ()).message


# --- without a template --------------------------------------------------------------------------


def test_without_a_template_the_values_of_the_one_column_are_the_questions():
    table = read_rows(["Who?", "Why {x}?", 3.0])
    prompt = Prompt.of(None, table.columns)
    assert [prompt.question(row) for row in table.rows] == ["Who?", "Why {x}?", "3"]
    assert ask("About {value}", {"value": "Lego"}) == "About Lego"


def test_without_a_template_and_with_several_columns_it_is_refused():
    assert "{company}" in refusal(None).hint
    Prompt.of(None, ())


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (1e20, "1" + "0" * 20),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (2**70, str(2**70)),
        (True, "yes"),
        (False, "no"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E+1000000"), "1E+1000000"),
        (dt.date(2024, 3, 1), "2024-03-01"),
        (dt.datetime(2024, 3, 1), "2024-03-01"),
        (dt.datetime(2024, 3, 1, 12, 30), "2024-03-01 12:30:00"),
        (dt.datetime(2024, 3, 1, tzinfo=dt.UTC), "2024-03-01 00:00:00+00:00"),
        (dt.time(12, 30), "12:30:00"),
        (["a", None, 2.0], "a, 2"),
        (("a", ["b", "c"]), "a, [b, c]"),
        ({"name": "Lego", "year": 1932.0, "city": None}, "name: Lego, year: 1932"),
        ([{"a": 1}], "{a: 1}"),
        ({"b", "a"}, "a, b"),
        ("Straße".encode(), "Straße"),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_a_value_is_written_as_people_read_it(value: Any, text: str):
    assert write(value) == text


def test_values_of_numpy_and_pandas_are_written_like_pythons():
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    assert write(np.float64(3)) == "3" and write(np.float32(0.1)) == "0.1"
    assert write(pd.Timestamp("2024-03-01")) == "2024-03-01"
    assert write(np.array([1.0, 2.5])) == "1, 2.5"
    assert write(pd.Period("2024-03", "M")) == "2024-03"


def test_control_characters_of_values_do_not_get_into_a_question():
    assert write("a\x00b\x1b[31mc\x1b[0m\x7f\u202ed") == "abcd"
    assert write("one\r\ntwo\x0bthree\u2028four\tfive") == "one\ntwo\nthree\nfour\tfive"
    assert write("\ud83d\ude00\ud83d") == "😀\ufffd"
    assert write(["a\x00", "b"], ":>5") == " a, b"


# --- what is wrong with one row ------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, float("nan"), Decimal("nan")])
def test_a_missing_value_is_the_rows_error(missing: Any):
    error = row_error("{x} {y}", {"x": missing, "y": 1})
    assert error.field == "x" and "no value" in error.message and error.hint


def test_missing_values_of_pandas_are_missing():
    pd = pytest.importorskip("pandas")
    for missing in (pd.NA, pd.NaT):
        assert "no value" in row_error("{x} {y}", {"x": missing, "y": 1}).message


def test_a_column_that_a_row_has_not_is_the_rows_error():
    with pytest.raises(InvalidRequestError, match="no value"):
        Prompt.of("{company}", COLUMNS).question({})


def test_a_blank_value_beside_others_is_left_blank_and_all_blank_ones_are_an_error():
    assert ask("{x} {y}", {"x": "", "y": "Lego"}) == " Lego"
    assert "blank" in row_error("Who runs {x} {y}?", {"x": " ", "y": []}).message
    assert "blank" in row_error(None, {"value": " \n"}).message


def test_a_question_that_is_too_long_is_the_rows_error():
    assert len(ask("{x}", {"x": "a" * MAX_CHARACTERS})) == MAX_CHARACTERS
    for prompt in ("{x}", lambda row: row["x"], lambda row: Question(row["x"])):
        error = row_error(prompt, {"x": "a" * (MAX_CHARACTERS + 1)})
        assert error.field == "question" and "200,001" in error.message
    assert len(ask("{x:.1000}", {"x": "a" * (MAX_CHARACTERS + 1)})) == 1000


def test_a_value_that_cannot_be_written_is_the_rows_error():
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no words for it")

    assert "RuntimeError: no words for it" in row_error("{x}", {"x": Broken()}).message
    assert "ValueError" in row_error("{x}", {"x": 10**5000}).message
    assert "UnicodeDecodeError" in row_error("{x}", {"x": b"\xff"}).message
    error = row_error("{x:.2f}", {"x": "many"})
    assert error.field == "x" and "{x:.2f}" in error.message


# --- functions -----------------------------------------------------------------------------------


def test_a_function_is_given_the_row_as_a_dict_of_its_own():
    row = read_rows([ROW]).rows[0]

    def prompt(given: dict[str, Any]) -> str:
        assert type(given) is dict
        given["company"] += "!"
        return f"Who runs {given.pop('company')}?"

    checked = Prompt.of(prompt, COLUMNS)
    assert checked.question(row) == checked.question(row) == "Who runs Lego!?"


def test_a_function_may_return_a_question_with_its_options():
    question = ask(lambda row: Question(f"Who runs {row['company']}?", recency="month"))
    assert isinstance(question, Question) and question.recency == "month"


@pytest.mark.parametrize("result", [None, 3, b"Who?", ["Who?"]])
def test_a_function_that_returns_something_else_is_the_rows_error(result: Any):
    error = row_error(lambda row: result)
    assert error.field == "prompt" and "allowed: a text" in error.message


def test_a_function_that_returns_blank_text_is_the_rows_error():
    assert "blank" in row_error(lambda row: " \n").message


def test_a_functions_own_error_is_told_by_type_and_message_alone():
    def prompt(row: dict[str, Any]) -> str:
        try:
            raise OSError("pplx-0123456789abcdef")
        except OSError as error:
            raise ValueError("no such\ncompany, key pplx-0123456789abcdef") from error

    error = row_error(prompt)
    assert "ValueError: no such company" in error.message
    assert "pplx-0" not in error.message


def test_a_function_that_takes_a_column_that_there_is_not_is_told_the_nearest():
    error = row_error(lambda row: row["compny"])
    assert "did you mean 'company'?" in error.message and "{company}" in error.hint
    assert "row['company']" in row_error(lambda row: row.company).hint  # type: ignore[attr-defined]


def test_a_question_that_a_function_makes_wrongly_is_told_as_such():
    error = row_error(lambda row: Question("Who?", recency="decade"))
    assert error.field == "recency" and "month" in error.message


def test_an_error_that_cannot_be_told_is_told_by_its_type():
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def prompt(row: dict[str, Any]) -> str:
        raise Odd

    assert "Odd" in row_error(prompt).message


def test_an_interrupt_in_a_function_is_no_rows_error():
    def prompt(row: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Prompt.of(prompt, COLUMNS).question(ROW)


def test_async_functions_are_refused_and_what_they_left_is_closed(
    recwarn: pytest.WarningsRecorder,
):
    async def prompt(row: dict[str, Any]) -> str:
        return "Who?"

    assert "async" in refusal(prompt).message
    assert "coroutine" in row_error(lambda row: prompt(row)).message
    gc.collect()
    assert not recwarn.list  # none "was never awaited"


# --- any text ------------------------------------------------------------------------------------

BRACES = st.text(st.sampled_from("{}:x y.5f\n") | st.characters(codec="utf-8"), max_size=30)


@given(BRACES)
def test_any_text_is_a_good_template_or_is_refused_and_never_fails_otherwise(template: str):
    row = {"x": "a value", "y": 2.5}
    try:
        text = Prompt.of(template, tuple(row)).question(row)
    except InvalidRequestError:
        return
    assert isinstance(text, str) and text.strip()


@given(BRACES, BRACES)
def test_any_text_with_its_braces_doubled_comes_back_as_it_was(before: str, after: str):
    doubled = [text.replace("{", "{{").replace("}", "}}") for text in (before, after)]
    assert ask("{x}".join(doubled), {"x": "value"}) == before + "value" + after


@given(st.lists(st.sampled_from(["{{", "}}", "{x}", "{y}", "{x:>9}", "b", "}", "{"])))
def test_a_template_means_what_it_means_to_python(pieces: list[str]):
    template = "".join(pieces)
    row = {"x": "one", "y": "two"}
    expected = as_python_means(template, row)
    # To Python, a template without a field is one, too.
    if expected is None or expected == as_python_means(template, {"x": "1", "y": "2"}):
        refusal(template, tuple(row))
    else:
        assert ask(template, row) == expected


def as_python_means(template: str, row: dict[str, str]) -> str | None:
    try:
        return string.Formatter().vformat(template, (), row)
    except (ValueError, KeyError, IndexError):
        return None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text()
        | st.binary() | st.dates() | st.datetimes() | st.timedeltas() | st.complex_numbers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=5,
    ),
    st.sampled_from(["", ":.2f", ":>5", ":%Y", ":d"]),
)  # fmt: skip
def test_any_value_is_written_without_controls_or_is_the_rows_error(value: Any, spec: str):
    prompt = Prompt.of(f"{{x{spec}}}", ("x",))
    try:
        text = prompt.question(read_rows([{"x": value}]).rows[0])
    except InvalidRequestError:
        return
    assert isinstance(text, str)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
    text.encode()

"""Plots of sources and citations: what is drawn, where, and what is left alone."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from ipyperplexity.citations import count_citations, find_citations
from ipyperplexity.claims import plot_citations
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tabular.charts import MAX_ROWS, plot_counts, plot_dates, plot_positions

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

TEXT = "It is tall.[1] It moves.[2][1] It sings.[9]"
DAYS = [dt.date(2024, 1, 5), None, dt.date(2025, 6, 1)]


def page(n: int, domain: str, day: dt.date | None = None) -> Source:
    return Source(n, f"Title {n}", f"https://{domain}/{n}", domain, published=day)


FEW = count_citations(
    TEXT,
    Sources(
        page(n, domain, day)
        for n, domain, day in zip((1, 2, 3), ("a.example", "b.example", "a.example"), DAYS, strict=True)
    ),
)  # fmt: skip
MANY = Sources(
    page(n, f"site{n % 25:02}.example", dt.date(2024, 1, 1) + dt.timedelta(days=9 * n))
    for n in range(1, 41)
)


@pytest.fixture(autouse=True)
def no_figure_is_left_open() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def drawn(ax: Any) -> Any:
    """Draw everything, and fail on any warning of matplotlib."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()
    return ax


def overlaps(ax: Any) -> bool:
    boxes = [label.get_window_extent() for label in drawn(ax).get_yticklabels()]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


def every_plot(sources: Sources, text: str, ax: Any = None) -> list[Any]:
    citations = find_citations(text, sources)
    return [
        sources.plot_domains(ax),
        sources.plot_timeline(ax),
        plot_citations(citations, len(text), ax),
    ]


# --- what is drawn -----------------------------------------------------------------------------


def test_each_domain_has_a_bar_with_its_cited_part_strong() -> None:
    ax = drawn(FEW.plot_domains())
    assert labels(ax) == ["a.example", "b.example"]
    pale, strong = ax.containers
    assert [bar.get_width() for bar in pale] == [2, 1]
    assert [bar.get_width() for bar in strong] == [1, 1]
    assert pale[0].get_facecolor()[3] < strong[0].get_facecolor()[3] == 1
    assert pale[0].get_facecolor()[:3] == strong[0].get_facecolor()[:3]
    assert ax.get_title(loc="left") == "Sources by domain"
    assert ax.get_xlabel() == "sources (strong: cited)"
    assert ax.yaxis_inverted()


def test_beyond_fifteen_domains_the_rest_are_one_bar() -> None:
    ax = MANY.plot_domains()
    assert len(labels(ax)) == MAX_ROWS + 1
    assert labels(ax)[-1] == "10 others"
    assert sum(bar.get_width() for bar in ax.containers[0]) == 40
    assert "1 others" not in labels(plot_counts({f"d{n}": 1 for n in range(16)}, title="", xlabel=""))  # fmt: skip


def test_each_dated_source_is_a_point_and_the_others_are_counted() -> None:
    ax = drawn(FEW.plot_timeline())
    assert labels(ax) == ["a.example"]
    assert sum(len(points.get_offsets()) for points in ax.collections) == 2
    hollow, filled = ax.collections
    assert len(hollow.get_facecolors()) == 0 and len(filled.get_facecolors()) == 1
    assert ax.get_xlabel() == "published (filled: cited)\n1 without a date"
    first, last = ax.get_xlim()
    assert first < min(matplotlib.dates.date2num(day) for day in DAYS if day) < last


def test_the_newest_domain_is_on_top_and_old_ones_share_a_row() -> None:
    ax = MANY.plot_timeline()
    assert labels(ax)[0] == "site15.example"
    assert labels(ax)[-1] == "10 others"
    assert sum(len(points.get_offsets()) for points in ax.collections) == 40


@pytest.mark.parametrize("day", [dt.date.min, dt.date.max, dt.date(2024, 2, 29)])
def test_any_single_day_can_be_drawn(day: dt.date) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib finds no tick beyond the calendar's end
        ax = plot_dates([day], ["a"], [True], title="", xlabel="")
        ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert low < high and low <= matplotlib.dates.date2num(day) <= high


def test_marks_stand_where_the_text_cites_and_unknown_numbers_say_so() -> None:
    ax = drawn(plot_citations(find_citations(TEXT, FEW), len(TEXT)))
    assert labels(ax) == ["a.example [1]", "b.example [2]", "unknown [9]"]
    assert [list(row.get_positions()) for row in ax.collections] == [
        [TEXT.index("[1]"), TEXT.rindex("[1]")],
        [TEXT.index("[2]")],
        [TEXT.index("[9]")],
    ]
    low, high = ax.get_xlim()
    assert low <= 0 and len(TEXT) <= high < 1.1 * len(TEXT)


def test_of_many_rows_the_most_cited_are_kept_in_the_order_of_the_text() -> None:
    rows = [f"r{n}" for n in range(30)] + ["r29", "r3", "r29"]
    ax = plot_positions(range(33), rows, length=40, title="", xlabel="")
    assert len(labels(ax)) == MAX_ROWS + 1
    assert labels(ax)[:4] == ["r0", "r1", "r2", "r3"]
    assert labels(ax)[-2:] == ["r29", "15 others"]
    assert sum(len(row.get_positions()) for row in ax.collections) == 33


def test_without_data_there_is_an_empty_plot_with_its_labels() -> None:
    for ax, note in zip(
        every_plot(Sources(), ""),
        ("no sources", "no sources with a date", "no citations"),
        strict=True,
    ):
        drawn(ax)
        assert ax.get_title(loc="left") and ax.get_xlabel()
        assert [text.get_text() for text in ax.texts] == [note]
        assert labels(ax) == []


# --- labels that come from the web -------------------------------------------------------------


def test_dollars_and_underscores_in_names_are_no_mathematics() -> None:
    name = r"$\frac{1}{0}$_x^"
    ax = plot_counts({name: 1, "$5 to $7": 2}, title="$a_$ $", xlabel="x")
    drawn(ax)
    assert labels(ax) == ["$5 to $7", name]
    assert ax.get_title(loc="left") == "$a_$ $"


@pytest.mark.parametrize("n", [1, 5, 17, 40])
def test_long_names_are_cut_at_their_front_and_do_not_overlap(n: int) -> None:
    long = Sources(page(i, f"{'sub.' * 30}host{i}.example") for i in range(1, n + 1))
    ax = long.plot_domains()
    assert all(len(label) <= 36 for label in labels(ax))
    assert labels(ax)[0].startswith("…") and labels(ax)[0].endswith("host1.example")
    assert not overlaps(ax)
    box = ax.get_tightbbox()
    assert box.x0 >= 0 and box.x1 <= ax.figure.bbox.x1


def test_in_low_axes_names_get_smaller_and_do_not_overlap() -> None:
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    MANY.plot_domains(axes[0, 0])
    MANY.plot_timeline(axes[1, 1])
    assert not overlaps(axes[0, 0]) and not overlaps(axes[1, 1])
    assert figure.axes == list(axes.flat)


def test_controls_and_missing_names_are_drawn_as_something() -> None:
    ax = drawn(plot_counts({"\x1b[31m\u202eevil": 1, "": 1}, title="a\x00b", xlabel=""))
    assert labels(ax) == ["(none)", "[31m evil"]


# --- what is left alone ------------------------------------------------------------------------


def test_given_axes_are_used_and_no_figure_is_made() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots()
    assert every_plot(FEW, TEXT, ax) == [ax, ax, ax]
    assert figure.axes == [ax]
    assert plt.get_fignums() == []


def test_the_current_axes_of_the_user_stay_so_when_others_are_given() -> None:
    _, (left, right) = plt.subplots(1, 2)
    plt.sca(left)
    every_plot(FEW, TEXT, right)
    assert plt.gca() is left and len(plt.get_fignums()) == 1
    assert left.get_title(loc="left") == "" and not left.collections


def test_without_axes_each_plot_makes_one_figure_and_changes_no_setting() -> None:
    before = dict(matplotlib.rcParams)
    every_plot(FEW, TEXT)
    assert len(plt.get_fignums()) == 3
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("style", ["default", "dark_background", "ggplot"])
def test_colors_are_those_of_the_style_in_use(style: str) -> None:
    with plt.style.context(style):
        first = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"][0]
        ax = drawn(FEW.plot_domains())
        assert ax.containers[1][0].get_facecolor() == matplotlib.colors.to_rgba(first)
        assert ax.title.get_color() in (matplotlib.rcParams["text.color"], "auto")


@pytest.mark.parametrize("wrong", ["axes", 3, "figure", "array"])
def test_what_is_no_axes_is_refused_by_name_and_leaves_no_figure(wrong: Any) -> None:
    if wrong == "array":
        wrong = plt.subplots(1, 2)[1]
    elif wrong == "figure":
        wrong = plt.figure()
    count = len(plt.get_fignums())
    with pytest.raises(InvalidRequestError, match=r"ax: got a value of type .*; allowed") as e:
        FEW.plot_domains(wrong)
    assert e.value.field == "ax"
    assert len(plt.get_fignums()) == count


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_matplotlib_is_imported_by_the_first_plot_and_not_before() -> None:
    code = (
        "import sys; import ipyperplexity.claims, ipyperplexity.tabular.charts\n"
        "from ipyperplexity.sources import Sources\n"
        "print('matplotlib' in sys.modules)"
    )
    assert run_python(code) == "False"


def test_without_matplotlib_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from ipyperplexity.sources import Sources\n"
        "try: Sources().plot_domains()\n"
        "except ImportError as e: print(e, '|', e.__context__)"
    )
    assert run_python(code) == 'plots need matplotlib: pip install "ipyperplexity[plot]" | None'


def test_a_notebook_shows_a_plot_once() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [
        "%matplotlib inline\n"
        "from ipyperplexity.sources import Source, Sources\n"
        "sources = Sources([Source(1, 'A', 'https://a.example', 'a.example')])",
        "sources.plot_domains()",
        "import matplotlib.pyplot as plt\nprint(plt.get_fignums())",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    pictures = [o for o in book.cells[1].outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 1
    assert book.cells[2].outputs[0].text.strip() == "[]"

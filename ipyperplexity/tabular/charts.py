"""Plots of columns: counts, dates, positions. Knows no Answer.

Invariant: a plot touches the Axes that it is given and nothing else: no setting of matplotlib, no
current figure, no other part of the figure. Without Axes it makes a figure through pyplot, as
pandas does, so that a notebook shows it once. No data gives an empty plot with its labels. Colors
are those of the style in use, labels are never read as mathematics.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import InvalidRequestError, MissingLibrary
from ipyperplexity.markup.links import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows with a name of their own; the others share one more.
MAX_ROWS = 15
#: Labels have at most so many characters, and so many for each inch of the plot.
_LABEL_LENGTH = 36
_LABEL_PER_INCH = 7
#: Fewer rows than this are drawn no thicker.
_FEWEST_ROWS = 3
_ROW_INCHES = 0.3
_PALE = 0.35
#: Labels come from the web: ``$`` must not start mathematics, nor ``_`` break TeX.
_LITERAL = {"parse_math": False, "usetex": False}


def plot_counts(
    counts: Mapping[str, int],
    marked: Mapping[str, int] | None = None,
    *,
    ax: Axes | None = None,
    title: str,
    xlabel: str,
    empty: str = "no data",
) -> Axes:
    """Draw one horizontal bar a name, the largest on top.

    Parameters
    ----------
    counts : mapping of str to int
        Length of the bars; beyond 15 names the rest are one bar, "n others".
    marked : mapping of str to int, optional
        The part of each that is drawn strong; all of it if not given.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure if not given.
    title, xlabel, empty : str
        What stands above, below, and in the middle of a plot without data.

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message names the extra.
    InvalidRequestError
        If ``ax`` is something else.
    """
    strong = counts if marked is None else marked
    ranked = sorted(counts, key=lambda name: (-counts[name], -strong.get(name, 0), name))
    named, rest = _split(ranked)
    groups = [[name] for name in named] + ([rest] if rest else [])
    sizes = [sum(counts[name] for name in group) for group in groups]
    parts = [sum(strong.get(name, 0) for name in group) for group in groups]
    names = _row_names(named, rest)

    axes = _axes(ax, len(names))
    # A sum is not of one kind with the bars above it, which its color says.
    colors = ["C0"] * len(named) + (["gray"] if rest else [])
    bars = axes.barh(range(len(names)), sizes, color=colors, alpha=_PALE)
    axes.barh(range(len(names)), parts, color=colors)
    axes.bar_label(bars, labels=[str(size) for size in sizes], padding=3)
    axes.set_xlim(0, max(sizes, default=1) * 1.12)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return _finish(axes, names, title, xlabel, empty)


def plot_dates(
    dates: Iterable[dt.date | None],
    rows: Iterable[str],
    marked: Iterable[bool],
    *,
    ax: Axes | None = None,
    title: str,
    xlabel: str,
    empty: str = "no dates",
) -> Axes:
    """Draw one point a dated item, in the row of its name; the row with the newest is on top.

    Marked points are filled, the others hollow. Beyond 15 names those without recent points share
    one row, "n others". Items without a date are counted below. Parameters and errors are as for
    :func:`plot_counts`.
    """
    items = list(zip(dates, rows, marked, strict=True))
    dated = [(day, name, mark) for day, name, mark in items if day is not None]
    newest: dict[str, dt.date] = {}
    for day, name, _ in dated:
        newest[name] = max(day, newest.get(name, day))
    named, rest = _split(sorted(newest, key=lambda name: (-newest[name].toordinal(), name)))
    place = {name: row for row, name in enumerate(named)}
    names = _row_names(named, rest)

    axes = _axes(ax, len(names))
    for mark, fill in ((False, "none"), (True, "C0")):
        here = [(day, place.get(name, len(named))) for day, name, m in dated if bool(m) is mark]
        if here:
            axes.scatter(*zip(*here, strict=True), facecolors=fill, edgecolors="C0", zorder=3)
    if dated:
        _date_axis(axes, [day for day, _, _ in dated])
    else:
        axes.set_xticks([])
    axes.grid(axis="x", alpha=0.3)
    undated = len(items) - len(dated)
    note = f"\n{undated} without a date" if undated else ""
    return _finish(axes, names, title, xlabel + note, empty)


def plot_positions(
    positions: Sequence[float],
    rows: Sequence[str],
    *,
    length: float,
    ax: Axes | None = None,
    title: str,
    xlabel: str,
    empty: str = "no citations",
) -> Axes:
    """Draw one mark an item at its position between 0 and ``length``, in the row of its name.

    Rows come in the order of their first position. Beyond 15 names those with the fewest marks
    share one row, "n others". Parameters and errors are as for :func:`plot_counts`.
    """
    items = sorted(zip(positions, rows, strict=True))
    sizes = Counter(name for _, name in items)
    order = {name: row for row, name in enumerate(sizes)}
    named, rest = _split(sorted(sizes, key=lambda name: (-sizes[name], order[name])))
    named.sort(key=order.__getitem__)
    place = {name: row for row, name in enumerate(named)}
    names = _row_names(named, rest)

    axes = _axes(ax, len(names))
    marks: list[list[float]] = [[] for _ in names]
    for position, name in items:
        marks[place.get(name, len(named))].append(position)
    if names:
        axes.eventplot(
            marks, lineoffsets=range(len(names)), linelengths=0.7, linewidths=2, colors="C0"
        )
    edge = max(length, 1)
    axes.set_xlim(-0.01 * edge, 1.01 * edge)
    axes.grid(axis="y", alpha=0.2)
    return _finish(axes, names, title, xlabel, empty)


def _axes(ax: Axes | None, n_rows: int) -> Any:
    """Return ``ax``, or the axes of a new figure that is as high as its rows need."""
    missing: str | None = None
    try:
        axes_type = import_module("matplotlib.axes").Axes
        pyplot = import_module("matplotlib.pyplot") if ax is None else None
    except ImportError as error:
        missing = error.name or "matplotlib"
    # Raised out here, so that the traceback is about the plot and not about imports.
    if missing is not None:
        raise MissingLibrary(
            'plots need matplotlib: pip install "ipyperplexity[plot]"', name=missing
        )
    if pyplot is not None:
        height = max(2.0, _ROW_INCHES * n_rows + 1.1)
        return pyplot.subplots(figsize=(7, height), layout="constrained")[1]
    if not isinstance(ax, axes_type):
        raise InvalidRequestError(
            f"ax: got a value of type {type(ax).__name__}; allowed: one matplotlib Axes.",
            field="ax",
            hint="Of several, give one: ax=axes[0].",
        )
    return ax


def _finish(axes: Any, names: Sequence[str], title: str, xlabel: str, empty: str) -> Axes:
    """Name the rows, from the top, and the axes."""
    axes.set_title(one_line(title), loc="left", **_LITERAL)
    axes.set_xlabel(xlabel, **_LITERAL)
    box, dpi = axes.get_window_extent(), axes.figure.dpi
    longest = min(_LABEL_LENGTH, max(int(box.width / dpi * _LABEL_PER_INCH), 12))
    axes.set_yticks(range(len(names)), [_shorten(name, longest) for name in names], **_LITERAL)
    axes.tick_params(axis="y", length=0)
    spare = max(_FEWEST_ROWS - len(names), 0) / 2
    axes.set_ylim(len(names) - 0.4 + spare, -0.6 - spare)
    axes.spines[["top", "right"]].set_visible(False)
    result: Axes = axes
    if not names:
        axes.text(0.5, 0.5, empty, ha="center", va="center", transform=axes.transAxes)
        return result
    # In Axes that are too low for their rows, small names read better than overlapping ones.
    room = 72 * box.height / dpi / len(names)
    size = axes.get_yticklabels()[0].get_fontsize()
    if size > 0.8 * room:
        axes.tick_params(axis="y", labelsize=max(0.8 * room, 4))
    return result


def _split(ranked: list[str]) -> tuple[list[str], list[str]]:
    """Return the names with a row of their own, and the others: none, or at least two."""
    few = len(ranked) <= MAX_ROWS + 1
    return (ranked, []) if few else (ranked[:MAX_ROWS], ranked[MAX_ROWS:])


def _row_names(named: Sequence[str], rest: Sequence[str]) -> list[str]:
    return [*named, *([f"{len(rest)} others"] if rest else [])]


def _shorten(name: str, longest: int) -> str:
    name = one_line(name) or "(none)"
    # The end of a host name says whose it is.
    return name if len(name) <= longest else "…" + name[1 - longest :]


def _date_axis(axes: Any, days: Sequence[dt.date]) -> None:
    """Scale the axis to the days, with room at both ends, as far as the calendar goes."""
    dates = import_module("matplotlib.dates")
    locator = dates.AutoDateLocator(minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    first, last = min(days), max(days)
    room = max((last - first).days // 25, 5)
    axes.set_xlim(_moved(first, -room), _moved(last, room))


def _moved(day: dt.date, n_days: int) -> dt.date:
    ordinal = day.toordinal() + n_days
    return dt.date.fromordinal(min(max(ordinal, 1), dt.date.max.toordinal()))

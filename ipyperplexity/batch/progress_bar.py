"""How far a batch is: rows, errors, dollars, time left; one bar by tqdm, or nothing at all."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Literal, Self

from ipyperplexity.answer_parts import format_cost
from ipyperplexity.errors import MissingLibrary
from ipyperplexity.option_checks import refuse
from ipyperplexity.tabular.frames import require


class ProgressBar:
    """A bar of ``tqdm.auto``: a widget in a notebook, a line of stderr in a terminal.

    Parameters
    ----------
    total : int
        Rows in all; with none there is no bar.
    show : bool or "auto"
        ``"auto"``: if tqdm is installed and somebody watches, which is to say that stderr is a
        terminal, or that the front end of the kernel can ask for input (nbconvert and papermill
        cannot).

    Raises
    ------
    InvalidRequestError
        If ``show`` is neither.
    ImportError
        If it shall be shown (``True``), and tqdm is not installed.

    Examples
    --------
    >>> with ProgressBar(100, False) as bar:
    ...     bar.update(40, errors=1, spent=0.12, cached=3)
    """

    def __init__(self, total: int, show: bool | Literal["auto"] = "auto") -> None:
        if not (isinstance(show, bool) or show == "auto"):
            raise refuse("progress", show, "True, False or 'auto'")
        self._bar: Any = None
        make = _tqdm(show)
        if make is not None and total > 0:
            # Answers come in bunches, and those from the cache at once: the time left is told
            # from many of them.
            self._bar = make(
                total=total, desc="Perplexity", unit=" rows", smoothing=0.05, dynamic_ncols=True
            )

    def update(self, done: int, *, errors: int, spent: float, cached: int) -> None:
        """Show how far it is.

        Parameters
        ----------
        done : int
            Rows that are over, well or not.
        errors : int
            Those of them that failed.
        spent : float
            US dollars so far.
        cached : int
            Rows whose answer came from the cache.
        """
        if self._bar is None:
            return
        self._bar.set_postfix_str(progress_facts(errors, spent, cached), refresh=False)
        self._bar.update(max(0, done - self._bar.n))

    def close(self) -> None:
        """Leave the bar as it is, for good; more than once does nothing."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def progress_facts(errors: int, spent: float, cached: int) -> str:
    """Return what stands beside the bar.

    Examples
    --------
    >>> progress_facts(1, 0.12, 0)
    '1 error, $0.12'
    >>> progress_facts(0, 0.0, 30)
    '$0.00, 30 cached'
    """
    facts = [f"{errors:,} error{'' if errors == 1 else 's'}"] if errors else []
    facts.append(format_cost(spent))
    if cached:
        facts.append(f"{cached:,} cached")
    return ", ".join(facts)


def _tqdm(show: bool | Literal["auto"]) -> Any:
    """Return the class to make a bar with, or None."""
    if show is False or (show == "auto" and not _is_watched()):
        return None
    try:
        return require("tqdm.auto", "progress=True", install='"ipyperplexity[progress]"').tqdm
    except MissingLibrary:
        if show is True:
            raise
    return None


def _is_watched() -> bool:
    """Whether a person may be looking; front ends with one say that they can ask for input."""
    interactive = sys.modules.get("IPython")
    shell: Any = interactive.get_ipython() if interactive is not None else None
    if not hasattr(shell, "kernel"):
        return sys.stderr is not None and sys.stderr.isatty()
    try:
        content = shell.get_parent().get("content", {})
    except Exception:  # a shell that cannot say has somebody in front of it
        return True
    return bool(content.get("allow_stdin", True))

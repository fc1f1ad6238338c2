"""What comes back: the text, its sources as a table, and how it came about.

An Answer is complete in itself: it can be pickled and shown anywhere, and holds no key and no
connection. What it needs from above (asking a follow-up) is handed to it by the client, and is
left behind when it is pickled. It is always truthy, and has neither ``len`` nor indexing, so that
numpy and pandas keep it whole; iterating gives its sources, so that ``pd.DataFrame(answer)`` is
their table.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from ipyperplexity.answer_frames import AnswerFrames
from ipyperplexity.answer_parts import Image, Thread, Turn, Usage, format_cost, summary_line
from ipyperplexity.citations import Citation, find_citations
from ipyperplexity.errors import (
    ConfigurationError,
    InvalidRequestError,
    PerplexityError,
    PerplexityWarning,
)
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tabular import files
from ipyperplexity.tabular.files import FilePath
from ipyperplexity.tools import ToolCall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ipyperplexity.claims import Claims
    from ipyperplexity.schema.frame import Layout
    from ipyperplexity.tabular.markdown import MarkdownTable

__all__ = ["Answer", "Asker", "Image", "ToolCall", "Turn", "Usage", "format_cost", "summary_line"]


class Asker(Protocol):
    """Asks a follow-up: the client's ``ask``, handed to an answer."""

    def __call__(self, text: str, **options: Any) -> Answer: ...


@dataclass(frozen=True, eq=False, repr=False)
class Answer(AnswerFrames):
    """An answer with its sources.

    Attributes
    ----------
    question : str
        What was asked, as it was sent.
    text : str
        The answer, in Markdown, with markers such as ``[1]``; ``str(answer)``.
    reasoning : str
        The model's thinking, where the service shows it.
    sources : Sources
        The table of pages; also ``to_pandas()``, ``to_polars()``, ``to_arrow()``.
    citations : tuple of Citation
        Every marker with its sentence and source.
    claims : Claims
        Its sentences, each with the sources that support it.
    searches : tuple of str
        The queries that the service searched for.
    images : tuple of Image
    related : tuple of str
        Questions that the service suggests.
    data : object
        The checked value of a structured answer (``schema=``), else None.
    tables : tuple of MarkdownTable
        Every table of the text.
    usage : Usage
    model : str or None
        The model that answered, as the service names it.
    backend : str
        The wire that was used.
    id : str or None
        The service's id of this answer.
    status : str
        ``completed``, ``incomplete`` (the service cut it), ``stopped`` (you did) or ``failed``.
    finish_reason : str or None
        The service's word for why it ended.
    truncated : bool
        Whether sources were left out to keep to ``limit``.
    error : PerplexityError or None
        What ended it, if it did not end well.
    created : datetime.datetime
        When it was asked; aware, UTC.
    elapsed : float
        Seconds from asking to the end.
    first_text : float or None
        Seconds to the first piece of text.
    cached : bool
        Whether it came from the cache, unpaid.
    raw : dict
        The service's own final record.
    turns : tuple of Turn
        The conversation before this question, oldest first.
    options : dict
        The options that were given, in values that JSON can hold.
    warnings : tuple of str
        What is worth a look.
    tool_calls : tuple of ToolCall
        The functions (``tools=``) that were run for it: arguments, output, errors, seconds.

    Examples
    --------
    >>> answer = Answer("Why?", "Because.[1]", sources=Sources([Source(1, "A", "https://a.example")]))
    >>> str(answer), [source.title for source in answer]
    ('Because.[1]', ['A'])
    """

    question: str
    text: str
    reasoning: str = ""
    sources: Sources = field(default_factory=Sources)
    searches: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    related: tuple[str, ...] = ()
    data: Any = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    backend: str = "agent"
    id: str | None = None
    status: str = "completed"
    finish_reason: str | None = None
    truncated: bool = False
    error: PerplexityError | None = None
    created: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    elapsed: float = 0.0
    first_text: float | None = None
    cached: bool = False
    raw: dict[str, Any] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    #: whether the service keeps it, so that a follow-up may name its id
    stored: bool = False
    #: what goes on in the same thread of the web endpoint; it may hold a token, so it stays here
    thread: Mapping[str, str] = field(default_factory=Thread, repr=False)
    #: where the rows of ``data`` are, and their columns; known without the schema's own classes
    data_layout: Layout | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "thread", Thread(self.thread))

    @cached_property
    def citations(self) -> tuple[Citation, ...]:
        """Every marker of the text, in order, with its sentence and source."""
        return find_citations(self.text, self.sources)

    @cached_property
    def claims(self) -> Claims:
        """Its sentences as a table: for each its sources, and whether it has any."""
        from ipyperplexity.claims import find_claims

        return find_claims(self.text, self.citations)

    @cached_property
    def tables(self) -> tuple[MarkdownTable, ...]:
        """Every Markdown table of the text."""
        from ipyperplexity.tabular.markdown import find_malformed, find_tables

        for paragraph in find_malformed(self.text):
            first = paragraph.partition("\n")[0]
            warnings.warn(
                f"A table of the answer cannot be read, and stays text: {first[:60]}",
                PerplexityWarning,
                stacklevel=2,
            )

        def web_id(position: int) -> int | None:
            page = self.sources.fetched(position)
            return page.id if page else None

        return find_tables(self.text, web_id)

    def __str__(self) -> str:
        return self.text

    def __iter__(self) -> Iterator[Source]:
        return iter(self.sources)

    def __bool__(self) -> bool:
        return True

    def conversation(self) -> tuple[Turn, ...]:
        """Return the turns up to and with this answer, oldest first."""
        return (*self.turns, Turn(self.question, self.text))

    def follow_up(self, text: str, **options: Any) -> Answer:
        """Ask a question that goes on from this answer.

        The model, the instructions, country and language of this answer hold on unless given anew.

        Raises
        ------
        ConfigurationError
            If this answer was unpickled, and so belongs to no client:
            use ``client.ask(text, follow=answer)``.
        """
        ask: Asker | None = self.__dict__.get("_ask")
        if ask is None:
            raise ConfigurationError(
                "This answer belongs to no client (it was loaded, or made by hand).",
                hint="Ask through one: client.ask(text, follow=answer).",
            )
        kept = self.options_for_follow_up()
        if options.get("search") is False:
            kept.pop("country", None)  # it only says where to search from
        return ask(text, **{**kept, **options, "follow": self})

    def options_for_follow_up(self) -> dict[str, Any]:
        """Return those of its options that hold on in a follow-up unless given anew."""
        return {name: self.options[name] for name in FOLLOWED_OPTIONS if name in self.options}

    def row(self) -> dict[str, Any]:
        """Return this answer as one flat row of plain values, for a table of answers."""
        return {
            "question": self.question,
            "text": self.text,
            "model": self.model,
            "backend": self.backend,
            "status": self.status,
            "finish_reason": self.finish_reason,
            "n_sources": len(self.sources),
            "n_cited": len(self.sources.cited),
            "truncated": self.truncated,
            "searches": self.usage.searches,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "total_tokens": self.usage.total_tokens,
            "reasoning_tokens": self.usage.reasoning_tokens,
            "cost_usd": self.usage.cost_usd,
            "created": self.created,
            "elapsed": self.elapsed,
            "first_text": self.first_text,
            "cached": self.cached,
            "error": self.error.code if self.error else None,
            "id": self.id,
        }

    @overload
    def to_markdown(self, path: None = None) -> str: ...
    @overload
    def to_markdown(self, path: FilePath) -> None: ...
    def to_markdown(self, path: FilePath | None = None) -> str | None:
        """Return the answer with a numbered list of its sources, or write that to a file.

        The functions that were run for it are listed below.
        """
        from ipyperplexity import export

        text = export.to_markdown(
            self.question,
            self.text,
            self.sources,
            accessed=self.created.date(),
            calls=self.tool_calls,
        )
        return files.hand_over(text, path)

    @overload
    def to_bibtex(self, path: None = None) -> str: ...
    @overload
    def to_bibtex(self, path: FilePath) -> None: ...
    def to_bibtex(self, path: FilePath | None = None) -> str | None:
        """Return the sources as BibTeX ``@online`` entries, with the date of access."""
        from ipyperplexity import export

        text = export.to_bibtex(self.sources, accessed=self.created.date())
        return files.hand_over(text, path)

    @overload
    def to_csl_json(self, path: None = None) -> str: ...
    @overload
    def to_csl_json(self, path: FilePath) -> None: ...
    def to_csl_json(self, path: FilePath | None = None) -> str | None:
        """Return the sources as CSL-JSON, which Zotero, pandoc and Quarto read.

        Examples
        --------
        >>> page = Source(1, "Dune", "https://d.example/dune", "d.example")
        >>> "https://d.example/dune" in Answer("Why?", "So.", sources=Sources([page])).to_csl_json()
        True
        """
        from ipyperplexity import export

        items = export.to_csl_json(self.sources, accessed=self.created.date())
        text = json.dumps(items, ensure_ascii=False, indent=2) + "\n"
        return files.hand_over(text, path)

    def plot_citations(self, ax: Axes | None = None) -> Axes:
        """Draw where in the text each source is cited; returns the matplotlib Axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from ipyperplexity.claims import plot_citations

        return plot_citations(self.citations, len(self.text), ax=ax)

    def save(self, path: FilePath) -> None:
        """Write the whole answer to a JSON file, to be read again with :meth:`load`.

        The file is a document: it takes the place of an older one only when it is complete, and
        has the permissions that the user's umask gives. Anything that looks like an API key is
        written as ``***``.

        Parameters
        ----------
        path : path
            Such as ``"answer.json"``.

        Raises
        ------
        InvalidRequestError
            If a field of the answer holds what JSON cannot.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "answer.json"
        ...     Answer("Why?", "So.").save(path)
        ...     Answer.load(path).text
        'So.'
        """
        from ipyperplexity import answer_record

        names = (field.name for field in dataclasses.fields(self))
        text = answer_record.dumps({name: getattr(self, name) for name in names})
        files.write_text(path, text)

    @classmethod
    def load(cls, path: FilePath, schema: Any = None) -> Answer:
        """Read an answer that :meth:`save` wrote.

        It equals the saved one in every field, except that ``data`` is plain JSON (its frame,
        ``to_pandas("data")``, is the same) and that keys are masked; it belongs to no client.

        Parameters
        ----------
        path : path
            The file.
        schema : optional
            What the answer was asked with: ``data`` is then read anew from the text, as an
            instance of the dataclass or model.

        Raises
        ------
        InvalidRequestError
            If the file is no saved answer, is damaged (the message says where), was written by a
            newer version, or if the text does not fit the schema.
        OSError
            If the file cannot be read.
        """
        from ipyperplexity import answer_record

        answer = cls(**answer_record.loads(Path(path).expanduser().read_bytes(), str(path)))
        if answer.error is not None:
            answer.error.answer = answer
        return answer if schema is None else answer._read_as(schema, str(path))

    def _read_as(self, schema: Any, name: str) -> Answer:
        from ipyperplexity.schema import Schema, SchemaMismatch

        form, problem, place = Schema.of(schema), "", ""
        try:
            data = form.parse(self.text)
        except SchemaMismatch as mismatch:
            problem, place = str(mismatch), mismatch.path
        except Exception as error:  # a check of the user's own class may raise anything
            problem = f"{type(error).__name__}: {error}"
        if problem:
            raise InvalidRequestError(
                f"The answer in {name} does not fit the schema: {problem}",
                field=place,
                hint="Load it without schema= to see its text.",
            )
        answer = dataclasses.replace(self, data=data, data_layout=form.layout)
        if answer.error is not None:
            answer.error.answer = answer
        return answer

    def summary(self) -> str:
        """Return the status line: model, seconds, tokens, cost, sources.

        Examples
        --------
        >>> usage = Usage(total_tokens=1234)
        >>> Answer("Why?", "So.", model="m/1", elapsed=2.34, usage=usage).summary()
        'm/1 · 2.3 s · 1,234 tokens · no sources'
        """
        return summary_line(
            model=self.model,
            seconds=self.elapsed,
            usage=self.usage,
            n_sources=len(self.sources),
            status=self.status,
            cached=self.cached,
            demo=self.backend == "demo" or (self.model or "").startswith("demo/"),
        )

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        shown = text if len(text) <= 60 else text[:57] + "..."
        status = "" if self.status == "completed" else f", status={self.status!r}"
        return f"Answer({shown!r}, {len(self.sources)} sources, model={self.model!r}{status})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self.to_text())

    def _notices(self) -> tuple[str, ...]:
        # A failed answer that is shown again, or saved in a notebook, still says why.
        why = (self.error.message,) if self.status == "failed" and self.error else ()
        return self.warnings + why

    def to_text(self) -> str:
        """Return the answer for a terminal: text, sources, function calls, status line.

        There are no control characters in it.
        """
        from ipyperplexity.markup import terminal

        return terminal.answer_text(
            self.text,
            self.sources,
            status=self.summary(),
            notices=self._notices(),
            calls=self.tool_calls,
        )

    def to_html(self, body_html: str | None = None) -> str:
        """Return the answer as safe HTML.

        Parameters
        ----------
        body_html : str, optional
            The text's HTML, if it has been rendered already.
        """
        from ipyperplexity.markup import markdown, page

        if body_html is None:
            body_html = markdown.render(self.text, self.sources.resolve)
        return page.answer_page(
            body_html=body_html,
            status_line=self.summary(),
            sources=self.sources,
            state=self.status,
            notices=self._notices(),
            searches=self.searches,
            calls=self.tool_calls,
        )

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if not name.startswith("_"):
            hint = "; its sources as a frame are answer.to_pandas(), its text is answer.text"
        raise AttributeError(f"an Answer has no {name!r}{hint}")

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in _UNPICKLED}
        return {**kept, "thread": Thread()}


_UNPICKLED = {"_ask", "citations", "claims", "tables"}
#: Options of an answer that hold on in its follow-ups unless given anew.
FOLLOWED_OPTIONS = ("model", "system", "country", "language", "reasoning")

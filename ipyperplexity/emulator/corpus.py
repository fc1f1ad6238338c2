"""What the embedded engine can answer from: titled passages, each with an address.

Invariant: a passage always has a title, at least one block of text or table, and an absolute
http(s) address, or a path below ``/corpus/`` that the server turns into one.
"""

from __future__ import annotations

import json
import re
import urllib.parse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from .prose import Block, parse_blocks
from .tables import Table, take_tables

__all__ = ["Corpus", "Passage"]

LOCAL_PREFIX = "/corpus/"


@dataclass(frozen=True)
class Passage:
    """One section of a document.

    Attributes
    ----------
    title
        Heading of the section.
    url
        Absolute address, or a path that starts with ``/corpus/``.
    blocks
        Its paragraphs, list items and code examples.
    site
        Name of the collection or document it belongs to; ``""`` if there is none.
    published
        Date of the document, or None.
    keywords
        Words under which it should be found although it does not use them.
    tables
        Its tables.
    """

    title: str
    url: str
    blocks: tuple[Block, ...]
    site: str = ""
    published: date | None = None
    keywords: str = ""
    tables: tuple[Table, ...] = ()

    @property
    def text(self) -> str:
        """All blocks, separated by blank lines, then the rows of the tables in words."""
        return "\n\n".join(
            [*(block.text for block in self.blocks), *(table.text for table in self.tables)]
        )


@dataclass(frozen=True)
class Corpus:
    """A named collection of passages.

    Examples
    --------
    >>> corpus = Corpus.builtin()
    >>> corpus.passages[0].url.startswith("https://docs.python.org/3/")
    True
    """

    name: str
    passages: tuple[Passage, ...]
    folder: Path | None = None
    files: tuple[str, ...] = field(default=(), repr=False)
    language: str = ""

    @classmethod
    def builtin(cls) -> Corpus:
        """Return the reference of the running Python, and a few pages that have aged.

        The reference is its language topics and its built-ins.
        """
        from .lesson_pages import lesson_passages
        from .pydocs import python_passages

        passages = (*python_passages(), *lesson_passages())
        return cls("the Python language reference", passages, language="en")

    @classmethod
    def from_folder(cls, path: str | Path) -> Corpus:
        """Read a folder of notes (``.md``, ``.txt``, ``.rst``, ``.ipynb``), subfolders included.

        Parameters
        ----------
        path
            The folder. The title of a note is that of its front matter, its first heading, or
            its file name; its date is ``date:`` of the front matter or the file's own.

        Raises
        ------
        FileNotFoundError
            There is no such folder.
        NotADirectoryError
            It is a file.
        ValueError
            It has no readable note.

        Warns
        -----
        UserWarning
            For each file that is not UTF-8 text; it is left out.
        """
        folder = Path(path).expanduser()
        if not folder.exists():
            raise FileNotFoundError(f"corpus folder not found: {folder}")
        if not folder.is_dir():
            raise NotADirectoryError(
                f"corpus must be a folder of notes, but this is a file: {folder}"
            )
        folder = folder.resolve()
        passages: list[Passage] = []
        files: list[str] = []
        for file in _note_files(folder):
            try:
                text = _text_of(file)
            except (ValueError, OSError) as problem:  # a decoding error is a ValueError
                warnings.warn(_left_out(file.relative_to(folder), problem), stacklevel=2)
                continue
            relative = file.relative_to(folder).as_posix()
            found = list(_read_note(file, relative, text))
            if found:
                passages.extend(found)
                files.append(relative)
        if not passages:
            kinds = ", ".join(sorted(_KINDS))
            raise ValueError(f"no readable document ({kinds}) with text in {folder}")
        return cls(folder.name or str(folder), tuple(passages), folder, tuple(files))

    def read_file(self, relative: str) -> str | None:
        """Return the text of one note of the folder, or None if it is none of the corpus."""
        # Only names that were listed when the folder was read are served: no path can climb out.
        if self.folder is None or relative not in self.files:
            return None
        try:
            return _text_of(self.folder / relative)
        except (OSError, ValueError):
            return None


def _text_of(file: Path) -> str:
    """Return the text of a note; of a notebook that of its Markdown and its code."""
    text = file.read_text(encoding="utf-8-sig")
    if file.suffix.lower() != ".ipynb":
        return text
    notebook = json.loads(text)
    cells = notebook.get("cells", []) if isinstance(notebook, dict) else []
    parts = []
    for cell in cells:
        source = cell.get("source", "") if isinstance(cell, dict) else ""
        source = "".join(source) if isinstance(source, list) else str(source)
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if kind == "markdown":
            parts.append(source)
        elif kind == "code" and source.strip():
            parts.append(f"```python\n{source}\n```")
    return "\n\n".join(parts)


def _left_out(file: Path, problem: Exception) -> str:
    """Say in one line why a note is left out of the corpus."""
    is_notebook = file.suffix.lower() == ".ipynb" and not isinstance(problem, UnicodeDecodeError)
    why = "it is no notebook" if is_notebook else "it is not UTF-8 text"
    if isinstance(problem, OSError):
        why = problem.strerror or type(problem).__name__
    name = "".join(sign if sign.isprintable() else "?" for sign in file.as_posix())
    return f"left out of the corpus: {name}: {why}"


_KINDS = {
    **{".md": "markdown", ".markdown": "markdown", ".ipynb": "markdown"},
    **{".txt": "text", ".rst": "text"},
}


def _note_files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.suffix.lower() not in _KINDS or any(part.startswith(".") for part in parts):
            continue
        # A link that leads out of the folder would publish what the user never named.
        if file.is_file() and file.resolve().is_relative_to(folder):
            yield file


_FRONT = re.compile(r"---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|$)", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*$")
_UNDERLINE = re.compile(r"([=\-~^*#+\"'`])\1{2,}\s*$")


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    found = _FRONT.match(text)
    if found is None:
        return {}, text
    pairs = (line.partition(":") for line in found.group(1).splitlines() if ":" in line)
    fields = {key.strip().lower(): value.strip().strip("\"'") for key, _, value in pairs}
    return fields, text[found.end() :]


def _as_date(written: str) -> date | None:
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y"):
        try:
            return datetime.strptime(written[:10] if form == "%Y-%m-%d" else written, form).date()
        except ValueError:
            continue
    return None


def _sections(lines: Sequence[str], *, hashes: bool) -> Iterator[tuple[str | None, list[str]]]:
    """Yield (heading or None, lines) pairs; headings are ``#`` lines or underlined lines."""
    heading: str | None = None
    held: list[str] = []
    fenced = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~~")):
            fenced = not fenced
        marked = _HEADING.match(line) if hashes and not fenced else None
        below = lines[at + 1] if at + 1 < len(lines) else ""
        title = line.strip()
        underlined = (
            not fenced
            and bool(title)
            and not line.startswith((" ", "\t", "|", "-", ">"))
            and bool(_UNDERLINE.match(below))
            and (len(below.strip()) >= len(title) - 2 or hashes)
            and not (at and lines[at - 1].strip() and not _UNDERLINE.match(lines[at - 1]))
        )
        if marked or underlined:
            yield heading, held
            heading, held = (marked.group(2) if marked else title), []
        elif fenced or not _UNDERLINE.match(line):
            held.append(line)
    yield heading, held


def _read_note(file: Path, relative: str, text: str) -> Iterator[Passage]:
    markdown = _KINDS[file.suffix.lower()] == "markdown"
    fields, body = _front_matter(text)
    sections = list(_sections(body.splitlines(), hashes=markdown))
    first = next((heading for heading, _ in sections if heading), None)
    title = fields.get("title") or first or file.stem.replace("_", " ").replace("-", " ")
    written = _as_date(fields.get("date", ""))
    published = written or datetime.fromtimestamp(file.stat().st_mtime).date()
    url = LOCAL_PREFIX + urllib.parse.quote(relative)
    for heading, lines in sections:
        rest, tables = take_tables("\n".join(lines))
        blocks = tuple(parse_blocks(rest))
        if not blocks and not tables:
            continue
        own = (heading or title).replace("`", "").replace("*", "")
        yield Passage(
            title=own,
            # A text fragment lets a browser jump to the section of a plain text file.
            url=url if own == title else f"{url}#:~:text={urllib.parse.quote(own, safe='')}",
            blocks=blocks,
            site="" if own == title else title,
            published=published,
            keywords=f"{title} {fields.get('tags', '')}",
            tables=tables,
        )

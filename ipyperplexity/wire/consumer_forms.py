"""Which of the places where perplexity.ai puts an answer's text is read (consumer-web 2.9).

The same answer stands in several blocks at once, so exactly one is read: the first of this order
that has text. Reading two would double it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_constants import ASK_TEXT, MARKDOWN_BLOCK, WORKFLOW_BLOCK
from ipyperplexity.wire.consumer_documents import Document, Documents
from ipyperplexity.wire.consumer_steps import workflow_answer


class Form(NamedTuple):
    """A text in one of its places.

    Attributes
    ----------
    name : hashable
        Which place, and how it is written there.
    pieces : list
        All of the text so far; what is no ``str`` in it counts as nothing.
    changed_from : int
        Index of the first piece that changed since this place was last read.
    """

    name: Hashable
    pieces: list[Any]
    changed_from: int = 0

    @property
    def text(self) -> str:
        return "".join(piece for piece in self.pieces if isinstance(piece, str))


def answer_form(documents: Documents, last_step: str, plain: str) -> Form | None:
    """Return the text of an answer; None if all of its places are blank.

    Parameters
    ----------
    documents : Documents
        The blocks: those named ``...markdown``, then ``ask_text``, then any other.
    last_step, plain : str
        The answer of the last step, and the plain ``text`` field.
    """
    ordered = list(_in_order(documents))
    for read in (_markdown, _workflow):
        for document in ordered:
            if (form := read(document)) is not None:
                return form
    for name, text in (("last step", last_step), ("text", plain)):
        if text.strip():
            return Form(name, [text])
    return None


def _in_order(documents: Documents) -> Iterator[Document]:
    def rank(document: Document) -> int:
        return 0 if "markdown" in document.usage else 1 if document.usage == ASK_TEXT else 2

    return iter(sorted(documents, key=rank))


def _markdown(document: Document) -> Form | None:
    block = document.fields.get(MARKDOWN_BLOCK)
    if not isinstance(block, dict):
        return None
    answer, chunks = block.get("answer"), values.items(block.get("chunks"))
    if isinstance(answer, str) and answer.strip():
        return Form((document.usage, "answer"), [answer])
    if not any(isinstance(chunk, str) and chunk.strip() for chunk in chunks):
        return None
    return Form((document.usage, "chunks"), chunks, document.looked_at())


def _workflow(document: Document) -> Form | None:
    answers = workflow_answer(document.fields.get(WORKFLOW_BLOCK))
    if not answers:
        return None
    changed_from = document.looked_at()
    if len(answers) == 1:
        ((kind, pieces),) = answers
        return Form((document.usage, "workflow", kind), pieces, changed_from)
    joined = [piece for _, pieces in answers for piece in ("\n\n", *pieces)][1:]
    return Form((document.usage, "workflow", "several"), joined)

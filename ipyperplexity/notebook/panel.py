"""The panel: ask beside the cells, while the kernel stays free.

A question runs in a thread of its own. The thread prints nothing and makes no display: it only sets
what widgets show, so it writes into no cell. Handlers of buttons may come on any thread; they set
an Event or start a thread, and touch nothing of IPython.
"""

from __future__ import annotations

import threading
import weakref
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from ipyperplexity.client import Client
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.events import Searching, SourcesFound
from ipyperplexity.notebook.live import show
from ipyperplexity.notebook.output_target import OutputDisplay, failure_bundle, show_in
from ipyperplexity.prices import PRESET_USD
from ipyperplexity.question import Question

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.answer_stream import AnswerStream

_DEFAULT = "default"
_RECENCIES = ("hour", "day", "week", "month", "year")
_SHOWN_QUESTION = 70
#: Seconds that closing waits for the thread, which a stop ends within a tenth of one.
_PATIENCE = 2.0
_panels: weakref.WeakSet[Panel] = weakref.WeakSet()


class Panel(widgets.VBox):  # type: ignore[misc]
    """A widget that asks, streams the answer, stops, follows up, and keeps what is worth keeping.

    Enter in the field asks. Each panel has a conversation of its own.

    Parameters
    ----------
    client : Client, optional
        Who asks; a new one with the settings of this notebook unless given.
    **options
        Of each question, such as ``domains``; see :class:`~ipyperplexity.Question`.

    Attributes
    ----------
    answer : Answer or None
        The newest.
    answers : tuple of Answer
        All of this panel, oldest first.

    Raises
    ------
    InvalidRequestError
        If an option is not allowed.

    Examples
    --------
    ::

        panel = pplx.Panel()
        panel            # as the last line of a cell
        panel.answer     # later, in another cell: what it has answered
    """

    def __init__(self, client: Client | None = None, **options: Any) -> None:
        Question("check", **options)
        self._client = client or Client()
        self._options = options
        self._lock = threading.Lock()
        self._answers: list[Answer] = []
        self._stream: AnswerStream | None = None
        self._thread: threading.Thread | None = None
        self._kept: Any = None
        self._make_parts(options)
        super().__init__(
            [
                widgets.HBox([self.field, self.ask_button, self.stop_button]),
                widgets.HBox([self.model, self.recency, self.follow_button, self.keep_button]),
                self.progress,
                self.output,
                self.history,
            ],
            layout=widgets.Layout(width="100%", max_width="60em"),
        )
        _panels.add(self)

    def _make_parts(self, options: dict[str, Any]) -> None:
        wide = widgets.Layout(flex="1 1 auto", width="auto")
        small = widgets.Layout(width="14em")
        narrow = {"description_width": "initial"}
        self.field = widgets.Text(placeholder="Ask Perplexity", layout=wide)
        self.ask_button = widgets.Button(description="Ask", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", disabled=True, tooltip="Stop it")
        self.follow_button = widgets.Button(
            description="Follow up", disabled=True, tooltip="Ask it as part of the conversation"
        )
        self.keep_button = widgets.Button(
            description="Keep in notebook",
            disabled=True,
            tooltip="Show the answer below, so that the saved notebook has it",
            layout=widgets.Layout(width="11em"),
        )
        models = [_DEFAULT, *PRESET_USD]
        own = options.get("model")
        self.model = widgets.Dropdown(
            options=models if own in (None, *models) else [own, *models],
            value=own or _DEFAULT,
            description="Model",
            layout=small,
            style=narrow,
        )
        self.recency = widgets.Dropdown(
            options=["any time", *_RECENCIES],
            value=options.get("recency") or "any time",
            description="Pages of",
            layout=small,
            style=narrow,
        )
        for button in (self.ask_button, self.stop_button, self.follow_button):
            button.layout = widgets.Layout(width="7em")
        self.progress = widgets.HTML()
        self.output = widgets.Output()
        self.history = widgets.Dropdown(
            options=[],
            description="Earlier",
            layout=widgets.Layout(width="98%", display="none"),
            style=narrow,
        )
        self.ask_button.on_click(lambda button: self._asked(follow=False))
        self.follow_button.on_click(lambda button: self._asked(follow=True))
        self.stop_button.on_click(lambda button: self.stop())
        self.keep_button.on_click(lambda button: self.keep())
        # Of the message itself: `on_submit` is deprecated, and a change of value is no Enter.
        self.field.on_msg(self._on_message)
        self.history.observe(self._choose, "value")

    def _on_message(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        if content.get("event") == "submit":
            self._asked(follow=False)

    # --- what users do with it ----------------------------------------------------------------

    @property
    def answer(self) -> Answer | None:
        """The newest answer."""
        return self._answers[-1] if self._answers else None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All answers of this panel, oldest first."""
        return tuple(self._answers)

    @property
    def is_running(self) -> bool:
        """Whether a question is being answered."""
        return self._stream is not None

    def ask(self, text: str, *, follow: bool = False) -> None:
        """Ask; the answer streams into the panel, and this returns at once.

        Parameters
        ----------
        text : str
            The question.
        follow : bool
            Whether it goes on from the newest answer.

        Raises
        ------
        InvalidRequestError
            If there is no question, or one is being answered.
        PerplexityError
            If it cannot be asked, for want of a key for example.
        """
        options = {**self._options, **self._picked()}
        if follow and self.answer is not None:
            options["follow"] = self.answer
        with self._lock:
            if self._stream is not None:
                raise InvalidRequestError(
                    "A question is being answered.", field="question", hint="Stop it first."
                )
            stream = self._stream = self._client.stream(text, **options)
            self._thread = threading.Thread(
                target=self._run, args=(stream,), name="ipyperplexity-panel", daemon=True
            )
        self._set_running(True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the answer; what had come stays."""
        stream = self._stream
        if stream is not None:
            stream.cancel()

    def wait(self, timeout: float | None = None) -> Answer | None:
        """Wait until the question is answered; return the newest answer.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.
        """
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        return self.answer

    def keep(self) -> None:
        """Show the newest answer below the panel, as an output that the saved notebook has."""
        if self.answer is not None and self._kept is not None:
            bundle = {"text/plain": self.answer.to_text(), "text/html": self.answer.to_html()}
            self._kept.update(bundle, raw=True)

    def close(self) -> None:
        """Stop the answer, and take the panel away."""
        if "output" not in vars(self):  # it was refused, and never made
            return
        self.stop()
        self.wait(_PATIENCE)
        for part in (self.field, self.output, self.progress, self.history):
            part.close()
        super().close()

    def _ipython_display_(self, **options: Any) -> None:
        show(self._repr_mimebundle_())
        # By its id it is found from any thread, and the saved notebook has it without a widget.
        self._kept = show({"text/plain": ""}, display_id=True)

    # --- the thread ---------------------------------------------------------------------------

    def _run(self, stream: AnswerStream) -> None:
        shown = OutputDisplay(stream, self.output)
        failure: PerplexityError | None = None
        try:
            with stream:
                stream.on_wait = shown.tick
                for event in stream:
                    shown.event(event)
                    if isinstance(event, Searching | SourcesFound):
                        self._say(_searched(stream))
        except PerplexityError as error:
            failure = error
        answer = stream.answer
        shown.finish(answer)
        if failure is not None and not answer.text:
            show_in(self.output, failure_bundle(failure))
        self._take(answer)

    def _take(self, answer: Answer) -> None:
        if answer.text:
            self._answers.append(answer)
        with self._lock:
            self._stream = None
        self._say("")
        self._set_running(False)
        if len(self._answers) > 1:
            self.history.options = [
                (_short(each.question), number) for number, each in enumerate(self._answers)
            ]
            self.history.value = len(self._answers) - 1
            self.history.layout.display = None

    # --- widgets ------------------------------------------------------------------------------

    def _asked(self, *, follow: bool) -> None:
        failure: PerplexityError | None = None
        try:
            self.ask(self.field.value, follow=follow)
        except PerplexityError as error:
            failure = error
        if failure is None:
            self.field.value = ""
        elif not self.is_running:
            show_in(self.output, failure_bundle(failure))

    def _picked(self) -> dict[str, Any]:
        picked: dict[str, Any] = {}
        if self.model.value != _DEFAULT:
            picked["model"] = self.model.value
        elif "model" in self._options:
            picked["model"] = None
        if self.recency.value in _RECENCIES:
            picked["recency"] = self.recency.value
        elif "recency" in self._options:
            picked["recency"] = None
        return picked

    def _set_running(self, running: bool) -> None:
        self.ask_button.disabled = running
        self.stop_button.disabled = not running
        can_follow = not running and self.answer is not None
        self.follow_button.disabled = self.keep_button.disabled = not can_follow

    def _say(self, words: str) -> None:
        self.progress.value = f"<small>{escape(words)}</small>" if words else ""

    def _choose(self, change: Any) -> None:
        number = change["new"]
        if number is not None and not self.is_running and number < len(self._answers):
            answer = self._answers[number]
            show_in(self.output, {"text/plain": answer.to_text(), "text/html": answer.to_html()})


def _searched(stream: AnswerStream) -> str:
    """Return what has been searched for, in a line."""
    return f"Searched: {' · '.join(map(_short, stream.searches))}" if stream.searches else ""


def _short(question: str) -> str:
    text = " ".join(question.split())
    return text if len(text) <= _SHOWN_QUESTION else text[: _SHOWN_QUESTION - 1] + "…"


def close_panels() -> None:
    """Close all panels of this kernel."""
    for panel in list(_panels):
        panel.close()

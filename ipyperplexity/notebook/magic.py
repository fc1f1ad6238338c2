"""``%perplexity`` and ``%%perplexity``: read the line, ask, show, keep the answer.

Everything that is paid for is kept first and shown second: the answer goes into its variable and
into ``last`` before an error or an interrupt ends the cell.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)

from ipyperplexity.errors import (
    Interrupted,
    InvalidRequestError,
    PerplexityError,
)
from ipyperplexity.notebook import completion, question_mark, remarks, waiting
from ipyperplexity.notebook.key_guard import refuse_key
from ipyperplexity.notebook.line import Line, help_text, parse
from ipyperplexity.notebook.settings import Settings, given_settings
from ipyperplexity.search_query import search_defaults

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.client import Client
    from ipyperplexity.notebook.second_display import SecondDisplay
    from ipyperplexity.question import Question

NAME = question_mark.NAME


@magics_class
class PerplexityMagics(Settings, Magics):  # type: ignore[misc, valid-type]
    """The magics; ``%config PerplexityMagics`` shows and sets their defaults."""

    shell: Any

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        # First of all: a profile's wrong setting ends what follows, and this is closed then, too.
        self._clients: dict[tuple[Any, ...], Client] = {}
        self._second_display: SecondDisplay | None = None
        self.last: Answer | None = None
        #: Of this kernel, oldest first, also those that failed.
        self.answers: list[Answer] = []
        #: What ``--continue`` goes on from: a failure without text does not end a conversation.
        self._conversation: Answer | None = None
        super().__init__(shell, **kwargs)

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def perplexity(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> Any:
        surprise = ""
        try:
            return self._obey(line, cell, local_ns)
        except PerplexityError:
            raise
        except Exception as error:
            surprise, where = f"{type(error).__name__}: {error}", _last_place(error)
        # The frames of any other error hold the notebook's variables and its earlier cells, maybe
        # with a key in them, and a verbose traceback prints what frames hold.
        raise PerplexityError(surprise, hint=f"In {where}. Please report it if it is ours.")

    def _obey(self, line: str, cell: str | None, local_ns: Mapping[str, Any] | None) -> Any:
        namespace = {**self.shell.user_ns, **(local_ns or {})}
        parsed = parse(line, lambda name: _is_answer(namespace.get(name)))
        command = parsed.command if cell is None else None
        if command is not None:
            from ipyperplexity.notebook.commands import run_command

            return run_command(self, *command)
        text = "\n\n".join(part for part in (parsed.text, (cell or "").strip("\n")) if part.strip())
        if cell is not None and parsed.magic.get("follow") is True and not parsed.literal:
            _refuse_unknown_answer(parsed.text)
        if not text:
            raise _nothing_asked(parsed)
        if parsed.is_search:
            return self._search(parsed, cell, namespace)
        client = self.client(parsed.magic.get("backend"))
        if "each" in parsed.magic:
            return self._each(client, parsed, text, namespace)
        question = self._question(client, parsed, text, namespace)
        if parsed.magic.get("background"):
            return self._leave(client, question, parsed)
        return self._run(client, question, parsed)

    # --- asking -------------------------------------------------------------------------------

    def client(self, backend: str | None = None) -> Client:
        """Return the client that these settings make."""
        from ipyperplexity.client import Client

        backend = backend or self.backend or None
        base_url = None if backend in _ADDRESSED else self.base_url or None
        key = (backend, base_url, self.model, self.max_retries, self.budget)
        if key not in self._clients:
            self._clients[key] = Client(
                backend=backend,
                base_url=base_url,
                model=self.model,
                max_retries=self.max_retries,
                budget=self.budget,
            )
        return self._clients[key]

    def newest_answers(self) -> list[Answer]:
        """Return the newest answer of a question, and of each client: it also knows its jobs'."""
        found = (self.last, *(client.last for client in self._clients.values()))
        return [answer for answer in found if answer is not None]

    def _search(self, parsed: Line, cell: str | None, namespace: Mapping[str, Any]) -> Any:
        """Search: a line is a query; a cell may hold several."""
        from ipyperplexity.notebook.interpolate import interpolate

        lines = [parsed.text, *(cell or "").splitlines()]
        if not parsed.magic.get("no_vars"):
            lines = [interpolate(line, namespace) for line in lines]
        queries = [line.strip() for line in lines if line.strip()]
        if not queries:
            raise _nothing_asked(parsed)
        refuse_key(" ".join(queries), literal=parsed.literal)
        client = self.client()
        if client.backend == "web":  # which has no search alone
            client = self.client("agent")
        given = {**parsed.question, **parsed.search}
        options = search_defaults(given_settings(self, beside={}), given) | given
        found = client.search(queries if len(queries) > 1 else queries[0], **options)
        for notice in parsed.notices:
            remarks.remark(notice)
        return self._give(found, parsed)

    def _each(
        self, client: Client, parsed: Line, template: str, namespace: Mapping[str, Any]
    ) -> Any:
        """Ask a question of each row of a table."""
        from ipyperplexity.notebook.interpolate import interpolate, look_up

        for name in ("background", "follow"):
            if parsed.magic.get(name):
                raise InvalidRequestError(
                    f"--each: not together with {_SPELLED[name]}.", field="each"
                )
        data = look_up(parsed.magic["each"], namespace, "--each", _EACH_HINT)
        if not parsed.magic.get("no_vars"):
            template = interpolate(template, namespace)
        refuse_key(template, literal=parsed.literal)
        options = {**given_settings(self, beside=parsed.question), **parsed.question}
        if "schema" in options:
            options["schema"] = look_up(options["schema"], namespace, "--schema", _SCHEMA_HINT)
        for notice in parsed.notices:
            remarks.remark(notice)
        refused: InvalidRequestError | None = None
        try:
            return self._give(client.ask_many(data, template, **options), parsed)
        except InvalidRequestError as error:
            refused = error
        if refused.field == "data":  # which the user knows by another name
            message = refused.message.replace("data:", f"--each {parsed.magic['each']}:", 1)
            refused = InvalidRequestError(message, field="each", hint=refused.hint)
        raise refused.with_traceback(None)

    def _leave(self, client: Client, question: Question, parsed: Line) -> Any:
        """Leave a question to the service."""
        job = client.submit(question, stream=True)
        for notice in (*parsed.notices, *job.record.notices):
            remarks.remark(notice)
        return self._give(job, parsed)

    def _give(self, value: Any, parsed: Line) -> Any:
        """Keep a value in its variable; return it, unseen if it is asked for so."""
        if name := parsed.magic.get("out"):
            self.shell.user_ns[name] = value
        if parsed.magic.get("quiet"):
            self._suppress_second_display(value)
        return value

    def _question(
        self, client: Client, parsed: Line, text: str, namespace: Mapping[str, Any]
    ) -> Question:
        from ipyperplexity.notebook.interpolate import interpolate, look_up

        if not parsed.magic.get("no_vars"):
            text = interpolate(text, namespace)
        refuse_key(text, literal=parsed.literal)
        refuse_key(parsed.question.get("system", ""), literal=True)
        options = {**given_settings(self, beside=parsed.question), **parsed.question}
        if "schema" in options:
            options["schema"] = look_up(options["schema"], namespace, "--schema", _SCHEMA_HINT)
        follow = self._follow(parsed, namespace)
        if follow is not None:
            options = {**_held_on(follow, parsed.question), **options, "follow": follow}
        return client.question(text, **options)

    def _follow(self, parsed: Line, namespace: Mapping[str, Any]) -> Answer | None:
        wanted = parsed.magic.get("follow", self._setting("conversation", False))
        if parsed.magic.get("new"):
            self._conversation = None
            return None
        if not wanted:
            return None
        if isinstance(wanted, str):
            answer: Answer = namespace[wanted]
            return answer
        if self._conversation is None and parsed.magic.get("follow"):
            raise InvalidRequestError(
                "--continue: there is no answer yet to go on from.", field="follow"
            )
        return self._conversation

    def _run(self, client: Client, question: Question, parsed: Line) -> Answer:
        from ipyperplexity.notebook.live import make_display

        quiet = bool(parsed.magic.get("quiet"))
        streaming = self._setting("stream", True) and not parsed.magic.get("no_stream")
        running = client.stream(question, stream=streaming)
        running.warnings += parsed.notices
        display = make_display(self.shell, running, quiet=quiet, raw=bool(parsed.magic.get("raw")))
        failure: PerplexityError | None = None
        interrupted = False
        try:
            with running:
                running.on_wait = display.tick
                for event in running:
                    display.event(event)
        except KeyboardInterrupt:
            interrupted = True
        except PerplexityError as error:
            failure = error
        finally:
            answer = running.answer  # there in every case: leaving the stream ends it
            self._keep(answer, parsed.magic.get("out"))
        display.finish(answer)
        if interrupted:
            raise Interrupted(f"stopped; {_what_is_kept(answer)}", answer=answer)
        if failure is not None:
            raise failure.with_traceback(None)
        self._suppress_second_display(answer)
        return answer

    def _setting(self, name: str, default: bool) -> bool:
        given = getattr(self, name)
        if given is None:
            from ipyperplexity.stored_settings import load_settings

            given = load_settings().get(name, default)
        return bool(given)

    def _suppress_second_display(self, answer: Any) -> None:
        from ipyperplexity.notebook.second_display import SecondDisplay

        if self._second_display is None:
            self._second_display = SecondDisplay(self.shell)
        self._second_display.suppress(answer)

    def _keep(self, answer: Answer, name: str | None) -> None:
        self.last = answer
        self.answers.append(answer)
        if answer.text:
            self._conversation = answer
        if name:
            self.shell.user_ns[name] = answer

    def close(self) -> None:
        """Stop what runs, forget the connections, leave the shell as it was."""
        self.nest_asyncio = False  # which holds for the whole process, and so does a tape
        self.replay = ""
        if self._second_display is not None:
            self._second_display.close()
        for client in self._clients.values():
            client.close()
        self._clients.clear()


PerplexityMagics.perplexity.__doc__ = help_text()


def _last_place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.name}, {frame.filename.rsplit('/', 1)[-1]} line {frame.lineno}"


def _is_answer(value: Any) -> bool:
    return all(hasattr(type(value), part) for part in ("conversation", "follow_up"))


def _held_on(follow: Answer, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier answer that hold on beside those of the line."""
    held = follow.options_for_follow_up()
    if beside.get("search") in ("no", "false", "off"):
        held.pop("country", None)
    return held


def _refuse_unknown_answer(word: str) -> None:
    """Refuse a lone word after ``--continue`` above a cell: surely a name, with a slip in it."""
    if word.isidentifier():
        raise InvalidRequestError(
            f"--continue: there is no answer in a variable {word!r}.",
            field="follow",
            hint=f"If it belongs to the question, put -- before it: %%perplexity -c -- {word}",
        )


def _nothing_asked(parsed: Line) -> InvalidRequestError:
    if parsed.is_search:
        return InvalidRequestError(
            "query: there is none.", field="query", hint="%perplexity -b search python news"
        )
    return InvalidRequestError(
        "question: there is none.",
        field="question",
        hint="%perplexity What is a lambda?   or   %perplexity help",
    )


def _what_is_kept(answer: Answer) -> str:
    if not answer.text:
        return "no text had come."
    return f"{len(answer.text):,} characters are kept: %perplexity last"


#: Backends with an address of their own, which a setting for a gateway does not move.
_ADDRESSED = ("demo", "web")
_SPELLED = {"background": "--background", "follow": "--continue"}
_EACH_HINT = "Define it first: a frame, a Series, or a list of texts or dicts."
_SCHEMA_HINT = "Define it first: a dataclass, a TypedDict, a JSON schema or a dict of types."


def load(shell: Any) -> None:
    """Register the magics, once."""
    unload(shell)
    magics = PerplexityMagics(shell)
    shell.register_magics(magics)
    completion.register(shell)
    question_mark.register(shell)
    waiting.register(shell)
    remarks.register()
    if "pandas" in sys.modules or "polars" in sys.modules:
        importlib.import_module("ipyperplexity.batch.accessor")  # df.perplexity


def unload(shell: Any) -> None:
    """Take everything away that :func:`load` put there."""
    # By name, not by type: after %autoreload the class is another one.
    ours = [c for c in shell.configurables if type(c).__name__ == PerplexityMagics.__name__]
    if "ipyperplexity.notebook.panel" in sys.modules:
        sys.modules["ipyperplexity.notebook.panel"].close_panels()
    for magics in ours:
        magics.close()
        shell.configurables.remove(magics)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)
    shell.magics_manager.registry.pop(PerplexityMagics.__name__, None)
    completion.unregister(shell)
    question_mark.unregister(shell)
    waiting.unregister()
    remarks.unregister()

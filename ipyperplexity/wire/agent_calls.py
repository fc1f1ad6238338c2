"""The Agent API's function calls: reading them, and sending their results (official-api 2.1, 3.2).

A call may come on ``output_item.added``, on ``.done``, in pieces of its arguments and in the final
record, with labels missing here and there; it is told once. Results go back with the whole input,
not with ``previous_response_id``: that works whatever the state of the first run (official-api 2.1
wants a completed one, and the service's pages contradict each other on whether the id is looked at
at all), and whether it was stored or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipyperplexity.events import ToolCalled, ToolReturned
from ipyperplexity.wire import values
from ipyperplexity.wire.base import WireRequest


@dataclass(frozen=True, slots=True)
class FunctionCall(ToolCalled):
    """A call with what the service wants to see again beside its result.

    Attributes
    ----------
    signature : str or None
        ``thought_signature``: models of Google refuse a call that comes back without it.
    preamble : str
        What the model wrote before the first call of a reply.
    """

    signature: str | None = None
    preamble: str = ""


class _Call:
    """What is known of one call so far."""

    def __init__(self) -> None:
        self.labels: dict[str, Any] = {}
        self.name = ""
        self.arguments = ""
        self.pieces: list[str] = []
        self.signature: str | None = None

    def is_meant_by(self, labels: Mapping[str, Any]) -> bool:
        """Whether the first label that both have is the same."""
        for label in ("call_id", "id", "index"):
            if label in labels and label in self.labels:
                return bool(labels[label] == self.labels[label])
        return False


class CallCollector:
    """Keeps account of the calls of a run.

    Examples
    --------
    >>> collector = CallCollector()
    >>> collector.item({"call_id": "c1", "name": "add", "arguments": "{}"}, 0)
    >>> collector.item({"call_id": "c1", "name": "add", "arguments": "{}"}, 3)
    >>> [call.name for call in collector.calls()]
    ['add']
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def item(self, item: Mapping[str, Any], index: Any = None) -> None:
        """Take a ``function_call`` item; a later one knows better."""
        call = self._find(item.get("call_id"), item.get("id"), index)
        call.name = values.text(item.get("name")) or call.name
        arguments = item.get("arguments")
        if isinstance(arguments, dict | list):  # meant as an object where JSON text is due
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.arguments = values.text(arguments) or call.arguments
        call.signature = values.text(item.get("thought_signature")) or call.signature

    def piece(self, message: Mapping[str, Any]) -> None:
        """Take a piece of the arguments."""
        call = self._find(
            message.get("call_id"), message.get("item_id"), message.get("output_index")
        )
        call.pieces.append(values.text(message.get("delta")))

    def whole(self, message: Mapping[str, Any]) -> None:
        """Take the whole arguments."""
        call = self._find(
            message.get("call_id"), message.get("item_id"), message.get("output_index")
        )
        call.name = values.text(message.get("name")) or call.name
        call.arguments = values.text(message.get("arguments")) or call.arguments

    def calls(self, preamble: str = "") -> list[FunctionCall]:
        """Return the calls in the order of their beginnings; those without a name are none."""
        named = [call for call in self._calls if call.name]
        return [
            FunctionCall(
                call.labels.get("call_id") or call.labels.get("id") or f"call_{number}",
                call.name,
                call.arguments or "".join(call.pieces),
                call.signature,
                preamble if number == 1 else "",
            )
            for number, call in enumerate(named, 1)
        ]

    def _find(self, call_id: Any, id: Any, index: Any) -> _Call:
        labels: dict[str, Any] = {
            "call_id": values.text(call_id),
            "id": values.text(id),
            "index": values.whole(index),
        }
        labels = {label: value for label, value in labels.items() if value not in ("", None)}
        call = next((call for call in self._calls if call.is_meant_by(labels)), None)
        if call is None:
            call = _Call()
            self._calls.append(call)
        call.labels = labels | call.labels
        return call


def give_results(
    request: WireRequest, calls: Sequence[ToolCalled], results: Sequence[ToolReturned]
) -> WireRequest:
    """Return the request with which an answer goes on after its functions were run.

    Parameters
    ----------
    request : WireRequest
        The one that was answered with the calls.
    calls, results : sequence
        Of the same length and order.
    """
    body = dict(request.body or {})
    items: list[dict[str, Any]] = list(body.get("input") or ())
    for call in calls:
        if isinstance(call, FunctionCall) and call.preamble:
            items.append({"role": "assistant", "content": call.preamble})
        items.append(_call_item(call))
    items += [
        {"type": "function_call_output", "call_id": result.call_id, "output": result.output}
        for result in results
    ]
    body["input"] = items
    if body.get("tool_choice") not in ("auto", "none"):
        # What had to be called has been called: forced again, the answer would never come.
        body.pop("tool_choice", None)
    # What it went on from has been found; a refusal from here on has another reason.
    return replace(request, body=body, notices=(), continues=False)


def _call_item(call: ToolCalled) -> dict[str, Any]:
    item = {
        "type": "function_call",
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments or "{}",
    }
    if isinstance(call, FunctionCall) and call.signature:
        item["thought_signature"] = call.signature
    return item

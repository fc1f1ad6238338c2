"""The text and the thoughts in a ``delta`` or a ``message``, in each form that servers have."""

from __future__ import annotations

from typing import Any

from ipyperplexity.wire import values


def read_content(part: Any) -> str:
    """Return the text: ``content`` as text, null or a list of parts, and a ``refusal``.

    Halves of surrogate pairs are kept: the other half may be in the next chunk.

    Examples
    --------
    >>> read_content({"content": [{"type": "text", "text": "It is."}], "refusal": None})
    'It is.'
    """
    if not isinstance(part, dict):
        return ""
    content = part.get("content")
    text = content if isinstance(content, str) else _parts(content, "text")
    return text + values.text(part.get("refusal"))


def read_thoughts(part: Any) -> str:
    """Return the thinking, which servers that tell it apart put beside ``content``.

    ``reasoning_content`` (DeepSeek, vLLM, LM Studio), ``reasoning`` (OpenRouter, Ollama, vLLM),
    ``reasoning_details`` (OpenRouter) or parts of type ``thinking`` (Mistral). A server that has
    several says the same in each.

    Examples
    --------
    >>> read_thoughts({"reasoning_content": "Hm.", "reasoning": "Hm."})
    'Hm.'
    """
    if not isinstance(part, dict):
        return ""
    return (
        values.text(part.get("reasoning_content"))
        or values.text(part.get("reasoning"))
        or "".join(
            values.text(detail.get("text")) or values.text(detail.get("summary"))
            for detail in values.objects(part.get("reasoning_details"))
        )
        or _parts(part.get("content"), "thinking")
    )


def _parts(content: Any, member: str) -> str:
    """Join one member of the parts of a list; a part may be plain text, or hold parts itself."""
    pieces: list[str] = []
    for item in values.items(content):
        if isinstance(item, str):
            pieces += [item] if member == "text" else []
        elif isinstance(item, dict):
            found = item.get(member)
            pieces.append(found if isinstance(found, str) else _parts(found, "text"))
    return "".join(pieces)

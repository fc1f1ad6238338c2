"""Every fixed word of perplexity.ai's own endpoint, in one place: it is undocumented, and ages.

What is sent is pi-perplexity 0.4's set of fields (consumer-web 1.4), except that nothing here
passes for a browser or an app: the client names itself in ``User-Agent``.
"""

from __future__ import annotations

from typing import Any, Final

ORIGIN: Final = "https://www.perplexity.ai"
ASK_PATH: Final = "/rest/sse/perplexity_ask"
TERMINATE_PATH: Final = "/rest/sse/perplexity_terminate"
#: A stale one is answered with HTTP 400.
API_VERSION: Final = "2.18"

#: Beside ``X-Request-ID``, which is ``params.frontend_uuid`` (consumer-web 1.2).
HEADERS: Final = {
    "Accept": "text/event-stream",
    "Origin": ORIGIN,
    "Referer": f"{ORIGIN}/",
    "X-App-ApiClient": "default",
    "X-App-ApiVersion": API_VERSION,
    "X-Perplexity-Request-Reason": "submit",
}
#: What the site's own stop button says.
TERMINATE_REASON: Final = "thread-floating-footer"

#: Body fields that no option changes (consumer-web 1.4).
FIXED_PARAMS: Final[dict[str, Any]] = {
    "mode": "copilot",
    "sources": ["web"],
    "attachments": [],
    "version": API_VERSION,
    "is_incognito": True,
    "use_schematized_api": True,
}
FOCUS_WEB: Final = "internet"
FOCUS_NO_SEARCH: Final = "writing"
DEFAULT_LANGUAGE: Final = "en-US"
DEFAULT_TIMEZONE: Final = "UTC"
#: Languages whose usual region is beyond doubt; any other is sent as it is.
REGIONS: Final = {
    "bg": "BG",
    "cs": "CZ",
    "da": "DK",
    "de": "DE",
    "el": "GR",
    "en": "US",
    "es": "ES",
    "et": "EE",
    "fi": "FI",
    "fr": "FR",
    "he": "IL",
    "hr": "HR",
    "hu": "HU",
    "id": "ID",
    "it": "IT",
    "ja": "JP",
    "ko": "KR",
    "lt": "LT",
    "lv": "LV",
    "nb": "NO",
    "nl": "NL",
    "pl": "PL",
    "ro": "RO",
    "ru": "RU",
    "sk": "SK",
    "sl": "SI",
    "sv": "SE",
    "th": "TH",
    "tr": "TR",
    "uk": "UA",
    "vi": "VN",
}

DEFAULT_MODEL: Final = "pplx_pro_upgraded"
DEEP_RESEARCH_MODEL: Final = "pplx_alpha"
COUNCIL_MODEL: Final = "pplx_agentic_research"
#: What an anonymous call is served with, whatever it asked for (consumer-web 1.3).
ANONYMOUS_MODEL: Final = "turbo"

#: Slug -> label (consumer-web 1.6). A list to offer, not a limit: any slug is sent as it is.
MODELS: Final[dict[str, str]] = {
    DEFAULT_MODEL: "Pro (auto)",
    "pplx_pro": "Best (auto)",
    "experimental": "Sonar",
    "pplx_reasoning": "Reasoning",
    DEEP_RESEARCH_MODEL: "Deep Research",
    "gpt54": "GPT-5.4",
    "gpt54_thinking": "GPT-5.4 Thinking",
    "gpt52": "GPT-5.2",
    "gpt52_thinking": "GPT-5.2 Thinking",
    "gpt52_pro": "GPT-5.2 Pro",
    "gpt51": "GPT-5.1",
    "gpt51_thinking": "GPT-5.1 Thinking",
    "claude50sonnet": "Claude Sonnet 5.0",
    "claude50sonnetthinking": "Claude Sonnet 5.0 Thinking",
    "claude46sonnet": "Claude Sonnet 4.6",
    "claude46sonnetthinking": "Claude Sonnet 4.6 Thinking",
    "claude47opus": "Claude Opus 4.7",
    "claude47opusthinking": "Claude Opus 4.7 Thinking",
    "claude45sonnet": "Claude Sonnet 4.5",
    "claude45sonnetthinking": "Claude Sonnet 4.5 Thinking",
    "gemini31pro_low": "Gemini 3.1 Pro Low",
    "gemini31pro_high": "Gemini 3.1 Pro High",
    "gemini30pro": "Gemini 3.0 Pro",
    "gemini30flash": "Gemini 3.0 Flash",
    "gemini30flash_high": "Gemini 3.0 Flash High",
    "grok41nonreasoning": "Grok 4.1",
    "grok41reasoning": "Grok 4.1 Reasoning",
    "grok4nonthinking": "Grok 4",
    "grok4": "Grok 4 Thinking",
    "nv_nemotron_3_super": "Nemotron 3 Super",
    "kimik25thinking": "Kimi K2.5 Thinking",
    "glm_5_2": "GLM 5.2",
}

#: Seconds for a whole answer, unless the user says otherwise (consumer-web 4.2).
TIME_LIMIT: Final = 90.0
DEEP_TIME_LIMIT: Final = 600.0
#: Deep Research, Model Council, Labs and Computer run for minutes.
LONG_RUNNING: Final = (DEEP_RESEARCH_MODEL, COUNCIL_MODEL, "pplx_beta", "pplx_asi")

#: Block usages (``intended_usage``) and payloads (consumer-web 2.4).
ASK_TEXT: Final = "ask_text"
MARKDOWN_BLOCK: Final = "markdown_block"
WORKFLOW_BLOCK: Final = "workflow_block"
PLAN_BLOCK: Final = "plan_block"
DIFF_BLOCK: Final = "diff_block"
SOURCE_BLOCKS: Final = ("web_result_block", "sources_mode_block")
REPORT: Final = "research_report"

END_EVENT: Final = "end_of_stream"
DONE: Final = "[DONE]"
COMPLETED: Final = "COMPLETED"
FAILED_STATUSES: Final = ("FAILED", "BLOCKED")
#: What stands in ``text`` in place of an answer (consumer-web 2.10).
ERROR_SENTENCES: Final = ("Error in processing query",)


def time_limit(model: str | None) -> float:
    """Return the seconds that an answer of a model may take unless the user says otherwise.

    Examples
    --------
    >>> time_limit("pplx_pro_upgraded"), time_limit("pplx_alpha")
    (90.0, 600.0)
    """
    return DEEP_TIME_LIMIT if model in LONG_RUNNING else TIME_LIMIT

"""What every vendor refuses although its types cannot say it."""

import re

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def broken(vendor: str, body: dict) -> list[str]:
    rules = {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
        "bedrock": _bedrock,
    }
    return list(rules[vendor](body)) if vendor in rules else []


def _names(names):
    seen = set()
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield f"tool name {name!r} is not allowed"
        elif name in seen:
            yield f"tool name {name!r} is there twice"
        seen.add(name)


def _paired(asked: list, answered: list):
    if asked and sorted(asked) != sorted(answered):
        yield f"calls {asked} are answered by {answered}"
    elif answered and not asked:
        yield f"results {answered} answer no call"


def _chat(body):
    yield from _names(t["function"]["name"] for t in body.get("tools", []) if t["type"] == "function")
    asked, answered = [], []
    for message in body["messages"] + [{"role": "end"}]:
        if message["role"] == "tool":
            answered.append(message["tool_call_id"])
            continue
        yield from _paired(asked, answered)
        asked = [call["id"] for call in message.get("tool_calls") or []]
        answered = []


def _responses(body):
    yield from _names(t["name"] for t in body.get("tools", []) if t["type"] == "function")
    items = body["input"] if isinstance(body["input"], list) else []
    of = lambda kind: [item["call_id"] for item in items if item.get("type") == kind]  # noqa: E731
    yield from _paired(of("function_call"), of("function_call_output"))


def _turns(messages, asks, answers):
    """User and assistant take turns, and results come right after calls."""
    asked, before = [], None
    for message in messages + [{"role": "end", "content": []}]:
        role, content = message["role"], message["content"]
        if role == before and role != "system":
            yield f"two turns of {role} follow each other"
        blocks = content if isinstance(content, list) else []
        yield from _paired(asked, [answers(block) for block in blocks if answers(block)])
        asked = [asks(block) for block in blocks if asks(block)]
        if role != "end" and not content:
            yield f"a turn of {role} is empty"
        before = role
    if messages and messages[0]["role"] != "user":
        yield "the first turn is not the user's"


def _anthropic(body):
    yield from _names(t["name"] for t in body.get("tools", []))
    asks = lambda b: b["id"] if b["type"] == "tool_use" else None  # noqa: E731
    answers = lambda b: b["tool_use_id"] if b["type"] == "tool_result" else None  # noqa: E731
    yield from _turns(body["messages"], asks, answers)
    yield from _no_blank_text(b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"])


def _no_blank_text(blocks):
    for block in blocks:
        if isinstance(block.get("text"), str) and not block["text"].strip():
            yield "a text block is blank"


def _bedrock(body):
    specs = [t["toolSpec"]["name"] for t in body.get("toolConfig", {}).get("tools", []) if "toolSpec" in t]
    yield from _names(specs)
    messages = body.get("messages", [])
    if not messages:
        yield "no conversation"
    asks = lambda b: b.get("toolUse", {}).get("toolUseId")  # noqa: E731
    answers = lambda b: b.get("toolResult", {}).get("toolUseId")  # noqa: E731
    yield from _turns(messages, asks, answers)
    yield from _no_blank_text(block for message in messages for block in message["content"])
    uses = any(asks(b) or answers(b) for m in messages for b in m["content"])
    if uses and not specs:
        yield "calls in the history, but no toolConfig"


def _gemini(body):
    declared = [f["name"] for t in body.get("tools", []) for f in t.get("functionDeclarations", [])]
    yield from _names(declared)
    asked = []
    for content in body["contents"] + [{"parts": []}]:
        parts = content.get("parts") or []
        answered = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        yield from _paired(asked, answered)
        asked = [p["functionCall"]["name"] for p in parts if "functionCall" in p]

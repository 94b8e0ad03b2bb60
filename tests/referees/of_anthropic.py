"""Anthropic messages, from the types of the `anthropic` package."""

from anthropic import types as t
from anthropic.types import ErrorResponse

from sse import event
from stories import Call, Cited, Refused, Said, Story, Thought, meaning

FOLDER, SUFFIX = "anthropic", "sse"
FINISH = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens", "content-filter": "refusal"}


def _send(data) -> bytes:
    return event(data, data.type)


def _block(index: int, start, deltas):
    yield _send(t.RawContentBlockStartEvent(type="content_block_start", index=index, content_block=start))
    for delta in deltas:
        yield _send(t.RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta))
    yield _send(t.RawContentBlockStopEvent(type="content_block_stop", index=index))


def _part(index: int, part):
    match part:
        case Thought(pieces, signature):
            deltas = [t.ThinkingDelta(type="thinking_delta", thinking=text) for text in pieces]
            deltas.append(t.SignatureDelta(type="signature_delta", signature=signature))
            start = t.ThinkingBlock(type="thinking", thinking="", signature="")
            return _block(index, start, deltas)
        case Said(pieces):
            deltas = [t.TextDelta(type="text_delta", text=text) for text in pieces]
            return _block(index, t.TextBlock(type="text", text="", citations=None), deltas)
        case Cited(text, url, title):
            cited = t.CitationsWebSearchResultLocation(
                type="web_search_result_location", url=url, title=title, cited_text=text, encrypted_index="Eo8B"
            )
            deltas = [
                t.CitationsDelta(type="citations_delta", citation=cited),
                t.TextDelta(type="text_delta", text=text),
            ]
            return _block(index, t.TextBlock(type="text", text="", citations=[]), deltas)
        case Call(id, name, pieces):
            # The vendor begins each input with an empty piece.
            texts = ("",) + pieces
            deltas = [t.InputJSONDelta(type="input_json_delta", partial_json=text) for text in texts]
            return _block(index, t.ToolUseBlock(type="tool_use", id=id, name=name, input={}), deltas)
    raise TypeError(part)


def _error(kind: str, message: str) -> bytes:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return event(ErrorResponse.model_validate(body), "error")


def render(story: Story):
    if story.error == "overloaded":
        yield _error("overloaded_error", "Overloaded")
        return
    input, output = story.tokens
    message = t.Message(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude-sonnet-4-5",
        content=[],
        stop_reason=None,
        stop_sequence=None,
        usage=t.Usage(input_tokens=input, output_tokens=1),
    )
    yield _send(t.RawMessageStartEvent(type="message_start", message=message))
    yield b'event: ping\ndata: {"type":"ping"}\n\n'
    for index, part in enumerate(story.parts):
        events = list(_part(index, part))
        last = index == len(story.parts) - 1
        # Whoever breaks or is cut does not close the block.
        yield from events[:-1] if last and (story.error or story.cut) else events
    if story.error:
        yield _error("api_error", "Internal server error")
    elif not story.cut:
        delta = {"stop_reason": FINISH[story.finish], "stop_sequence": None}
        usage = t.MessageDeltaUsage(output_tokens=output)
        yield _send(t.RawMessageDeltaEvent.model_validate({"type": "message_delta", "delta": delta, "usage": usage}))
        yield _send(t.RawMessageStopEvent(type="message_stop"))


def expect(story: Story):
    return meaning(story, spans=False)


def refusals():
    """The vendor has a type for each of its errors. The status is of its
    documentation."""
    for name, status, kind, message, meaning in (
        ("key", 401, "authentication_error", "invalid x-api-key", "key"),
        ("permission", 403, "permission_error", "Your key may not use this", "key"),
        ("model", 404, "not_found_error", "model: claude-none", "model"),
        ("quota", 402, "billing_error", "Your credit balance is too low", "quota"),
        ("limit", 429, "rate_limit_error", "Number of request tokens has exceeded", "rate"),
        ("length", 400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", "length"),
        ("filter", 400, "invalid_request_error", "Output blocked by content filtering policy", "filter"),
        ("request", 400, "invalid_request_error", "max_tokens: Field required", "request"),
        ("late", 504, "timeout_error", "Request timed out", "overloaded"),
        ("broken", 500, "api_error", "Internal server error", "overloaded"),
        ("busy", 529, "overloaded_error", "Overloaded", "overloaded"),
    ):
        body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
        typed = ErrorResponse.model_validate(body)
        if typed.error.type != kind or type(typed.error).__name__ == "BaseModel":
            raise ValueError(f"the vendor has no error {kind}")
        yield Refused(name, status, typed.model_dump(mode="json", exclude_unset=True), meaning)

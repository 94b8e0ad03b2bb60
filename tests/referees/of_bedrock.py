"""Bedrock's ConverseStream, checked against the service model of `botocore`."""

import json

from frames import frame
from shapes import check, model
from stories import Call, Cited, Refused, Said, Story, Thought, meaning

FOLDER, SUFFIX = "bedrock", "bin"
FINISH = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "max_tokens",
    "content-filter": "content_filtered",
}
EVENTS = model().operation_model("ConverseStream").output_shape.members["stream"].members


def _payload(kind: str, value: dict) -> bytes:
    complaints = check(EVENTS[kind], value)
    if complaints:
        raise ValueError(f"{kind}: {complaints}")
    # The service fills its events to an even length with a field that no
    # model of it mentions.
    return json.dumps(value | {"p": "abcdefgh"}, ensure_ascii=False, separators=(",", ":")).encode()


def _event(kind: str, **value) -> bytes:
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, _payload(kind, value))


def _exception(kind: str, **value) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, _payload(kind, value))


def _deltas(part):
    match part:
        case Thought(pieces, signature):
            yield from ({"reasoningContent": {"text": text}} for text in pieces)
            yield {"reasoningContent": {"signature": signature}}
        case Said(pieces):
            yield from ({"text": text} for text in pieces)
        case Cited(text, url, title):
            yield {"text": text}
            web = {"url": url, "domain": "example.com"}
            yield {"citation": {"title": title, "sourceContent": [{"text": text}], "location": {"web": web}}}
        case Call(_, _, pieces):
            yield from ({"toolUse": {"input": text}} for text in pieces)


def render(story: Story):
    if story.error == "overloaded":
        yield _exception("throttlingException", message="Too many requests")
        return
    yield _event("messageStart", role="assistant")
    for index, part in enumerate(story.parts):
        # Only calls say that they begin; text and thoughts are simply there.
        if isinstance(part, Call):
            start = {"toolUse": {"toolUseId": part.id, "name": part.name}}
            yield _event("contentBlockStart", start=start, contentBlockIndex=index)
        for delta in _deltas(part):
            yield _event("contentBlockDelta", delta=delta, contentBlockIndex=index)
        if not (story.error or story.cut):
            yield _event("contentBlockStop", contentBlockIndex=index)
    if story.error:
        yield _exception("modelStreamErrorException", message="It broke", originalStatusCode=500)
    elif not story.cut:
        yield _event("messageStop", stopReason=FINISH[story.finish])
        input, output = story.tokens
        usage = {"inputTokens": input, "outputTokens": output, "totalTokens": input + output}
        yield _event("metadata", usage=usage, metrics={"latencyMs": 12})


def expect(story: Story):
    return meaning(story, spans=False)


def refusals():
    """The service model names each error of the operation and its status."""
    errors = {shape.name: shape for shape in model().operation_model("ConverseStream").error_shapes}
    for name, kind, message, meaning in (
        ("key", "AccessDeniedException", "You don't have access to the model", "key"),
        ("model", "ResourceNotFoundException", "The model was not found", "model"),
        ("limit", "ThrottlingException", "Too many requests", "rate"),
        ("late", "ModelTimeoutException", "The model took too long", "overloaded"),
        ("starting", "ModelNotReadyException", "The model is not ready", "overloaded"),
        ("failed", "ModelErrorException", "The model failed", "overloaded"),
        ("broken", "InternalServerException", "It broke", "overloaded"),
        ("busy", "ServiceUnavailableException", "Try later", "overloaded"),
        ("length", "ValidationException", "Input is too long for requested model.", "length"),
        ("filter", "ValidationException", "This request has been blocked by our content filters.", "filter"),
        ("request", "ValidationException", "Malformed input request", "request"),
    ):
        body = {"message": message}
        complaints = check(errors[kind], body)
        if complaints:
            raise ValueError(f"{kind}: {complaints}")
        status = errors[kind].metadata["error"]["httpStatusCode"]
        yield Refused(name, status, body, meaning, {"x-amzn-errortype": kind})

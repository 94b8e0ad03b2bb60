"""OpenAI chat completions, from the types of the `openai` package."""

from openai.types import CompletionUsage, ErrorObject
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import (
    Choice,
    ChoiceDelta,
    ChoiceDeltaToolCall,
    ChoiceDeltaToolCallFunction,
)
from openai.types.chat.chat_completion_message import AnnotationURLCitation

from sse import event
from stories import Call, Cited, Refused, Said, Story, Thought, meaning

FOLDER, SUFFIX = "openai-chat", "sse"
FINISH = {"stop": "stop", "tool-calls": "tool_calls", "length": "length", "content-filter": "content_filter"}


def _chunk(choices, **more) -> bytes:
    chunk = ChatCompletionChunk(
        id="chatcmpl-1", object="chat.completion.chunk", created=1700000000, model="gpt-5", choices=choices, **more
    )
    return event(chunk)


def _delta(finish=None, **fields) -> bytes:
    return _chunk([Choice(index=0, delta=ChoiceDelta(**fields), finish_reason=finish)])


def _call(index: int, call: Call):
    def piece(function, **more):
        tool_call = ChoiceDeltaToolCall(index=index, function=ChoiceDeltaToolCallFunction(**function), **more)
        return _delta(tool_calls=[tool_call])

    yield piece({"name": call.name, "arguments": ""}, id=call.id, type="function")
    for text in call.pieces:
        yield piece({"arguments": text})


def render(story: Story):
    if story.error == "overloaded":
        error = ErrorObject(code="rate_limit_exceeded", message="Try later", param=None, type="rate_limit_error")
        yield event({"error": error.model_dump()})
        return
    yield _delta(role="assistant", content="")
    said, calls = 0, 0
    for part in story.parts:
        match part:
            case Thought(pieces):
                # Not of the vendor itself, but of many that speak its wire.
                yield from (_delta(reasoning_content=text) for text in pieces)
            case Said(pieces):
                yield from (_delta(content=text) for text in pieces)
                said += sum(map(len, pieces))
            case Cited(text, url, title):
                yield _delta(content=text)
                cited = AnnotationURLCitation(url=url, title=title, start_index=said, end_index=said + len(text))
                said += len(text)
                yield _delta(annotations=[{"type": "url_citation", "url_citation": cited.model_dump()}])
            case Call():
                yield from _call(calls, part)
                calls += 1
    if story.error:
        error = ErrorObject(code="server_error", message="It broke", param=None, type="server_error")
        yield event({"error": error.model_dump()})
    elif not story.cut:
        yield _delta(finish=FINISH[story.finish])
        input, output = story.tokens
        usage = CompletionUsage(prompt_tokens=input, completion_tokens=output, total_tokens=input + output)
        yield _chunk([], usage=usage)
        yield b"data: [DONE]\n\n"


def expect(story: Story):
    return meaning(story, spans=True)


def refused(name: str, status: int, kind: str, code: str | None, message: str, meaning: str) -> Refused:
    error = ErrorObject(code=code, message=message, param=None, type=kind)
    return Refused(name, status, {"error": error.model_dump()}, meaning)


def refusals():
    """The vendor has one type for all its errors; status and codes are of its
    documentation. Its other wire says the same."""
    yield refused("key", 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided", "key")
    yield refused("model", 404, "invalid_request_error", "model_not_found", "The model does not exist", "model")
    yield refused("limit", 429, "requests", "rate_limit_exceeded", "Rate limit reached", "rate")
    quota = "You exceeded your current quota, please check your plan and billing details."
    yield refused("quota", 429, "insufficient_quota", "insufficient_quota", quota, "quota")
    long = "This model's maximum context length is 128000 tokens."
    yield refused("length", 400, "invalid_request_error", "context_length_exceeded", long, "length")
    policy = "Your request was rejected as a result of our safety system."
    yield refused("filter", 400, "invalid_request_error", "content_policy_violation", policy, "filter")
    yield refused("request", 400, "invalid_request_error", None, "Unknown parameter: 'x'.", "request")
    yield refused("broken", 500, "server_error", None, "The server had an error", "overloaded")
    yield refused("busy", 503, "server_error", None, "The engine is currently overloaded", "overloaded")

"""Gemini, from the types of the `google-genai` package, in the form of REST."""

import base64
import json

from google.genai import types as t
from google.genai.errors import APIError

from sse import event
from stories import Call, Cited, Refused, Said, Story, Thought, meaning

FOLDER, SUFFIX = "gemini", "sse"
FINISH = {"stop": "STOP", "tool-calls": "STOP", "length": "MAX_TOKENS", "content-filter": "SAFETY"}


def _answer(parts=None, **more) -> bytes:
    finish = more.pop("finish_reason", None)
    grounding = more.pop("grounding_metadata", None)
    content = t.Content(role="model", parts=parts) if parts else None
    candidate = t.Candidate(index=0, content=content, finish_reason=finish, grounding_metadata=grounding)
    answer = t.GenerateContentResponse(
        candidates=[candidate], model_version="gemini-2.5-flash", response_id="resp_1", **more
    )
    return event(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


def _call(call: Call) -> t.Part:
    signature = b"signature-of-" + call.id.encode()
    args = json.loads(call.args or "{}")
    function = t.FunctionCall(id=call.id, name=call.name, args=args)
    return t.Part(function_call=function, thought_signature=signature)


def _grounding(cited: list[tuple[int, str, Cited]]) -> t.GroundingMetadata:
    chunks = [t.GroundingChunk(web=t.GroundingChunkWeb(uri=c.url, title=c.title)) for _, _, c in cited]
    supports = []
    for index, (start, text, _) in enumerate(cited):
        # This vendor counts bytes.
        segment = t.Segment(start_index=start, end_index=start + len(text.encode()), text=text)
        supports.append(t.GroundingSupport(segment=segment, grounding_chunk_indices=[index]))
    return t.GroundingMetadata(grounding_chunks=chunks, grounding_supports=supports, web_search_queries=["wetter"])


def _error(code: int, status: str, message: str) -> bytes:
    return event({"error": {"code": code, "message": message, "status": status}})


def render(story: Story):
    if story.error == "overloaded":
        yield _error(503, "UNAVAILABLE", "The model is overloaded.")
        return
    said, cited, calls = 0, [], []
    for part in story.parts:
        match part:
            case Thought(pieces, signature):
                yield from (_answer([t.Part(text=text, thought=True)]) for text in pieces[:-1])
                signed = t.Part(text=pieces[-1], thought=True, thought_signature=base64.b64decode(signature))
                yield _answer([signed])
            case Said(pieces):
                yield from (_answer([t.Part(text=text)]) for text in pieces)
                said += sum(len(text.encode()) for text in pieces)
            case Cited(text, _, _):
                yield _answer([t.Part(text=text)])
                cited.append((said, text, part))
                said += len(text.encode())
            case Call():
                if not story.cut:
                    calls.append(_call(part))
    if calls:
        yield _answer(calls)
    if story.error:
        yield _error(500, "INTERNAL", "It broke")
    elif not story.cut:
        input, output = story.tokens
        usage = t.GenerateContentResponseUsageMetadata(
            prompt_token_count=input, candidates_token_count=output, total_token_count=input + output
        )
        grounding = _grounding(cited) if cited else None
        yield _answer(
            [t.Part(text="")],
            finish_reason=t.FinishReason(FINISH[story.finish]),
            grounding_metadata=grounding,
            usage_metadata=usage,
        )


def expect(story: Story):
    found = meaning(story, spans=True)
    for call in found.calls:
        # Calls come as values, so that their text is ours.
        call["args"] = json.loads(call["args"] or "{}")
    return found


def refusals():
    """The package has no type for a body, but an exception that reads one."""
    info = "type.googleapis.com/google.rpc."
    key = [{"@type": info + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
    wait = [{"@type": info + "RetryInfo", "retryDelay": "27s"}]
    long = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    for name, code, status, message, details, meaning in (
        ("key", 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", key, "key"),
        ("permission", 403, "PERMISSION_DENIED", "Your key may not use this", [], "key"),
        ("model", 404, "NOT_FOUND", "models/gemini-none is not found for API version v1beta", [], "model"),
        ("limit", 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", wait, "rate"),
        ("length", 400, "INVALID_ARGUMENT", long, [], "length"),
        ("filter", 400, "INVALID_ARGUMENT", "The prompt was blocked due to prohibited content.", [], "filter"),
        ("request", 400, "INVALID_ARGUMENT", "Invalid JSON payload received. Unknown name \"x\"", [], "request"),
        ("broken", 500, "INTERNAL", "An internal error has occurred", [], "overloaded"),
        ("busy", 503, "UNAVAILABLE", "The model is overloaded. Please try again later.", [], "overloaded"),
        ("late", 504, "DEADLINE_EXCEEDED", "The request did not finish in time", [], "overloaded"),
    ):
        error = {"code": code, "message": message, "status": status} | ({"details": details} if details else {})
        read = APIError(code, {"error": error})
        if (read.code, read.status, read.message) != (code, status, message):
            raise ValueError(f"the package reads {read} from {error}")
        yield Refused(name, code, {"error": error}, meaning)

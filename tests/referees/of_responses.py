"""OpenAI Responses, from the types of the `openai` package."""

from openai.types import responses as r
from openai.types.responses.response_output_text import AnnotationURLCitation
from openai.types.responses.response_reasoning_item import Summary
from openai.types.responses.response_reasoning_summary_part_added_event import Part as SummaryPart
from openai.types.responses.response_reasoning_summary_part_done_event import Part as SummaryDone
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

import of_chat
from sse import event
from stories import Call, Cited, Said, Story, Thought, meaning

FOLDER, SUFFIX = "openai-responses", "sse"
INCOMPLETE = {"length": "max_output_tokens", "content-filter": "content_filter"}


class Stream:
    """Numbers the events and collects the output items."""

    def __init__(self):
        self.events: list[bytes] = []
        self.output: list = []

    def send(self, kind, type: str, **fields):
        data = kind(type=type, sequence_number=len(self.events), **fields)
        self.events.append(event(data, type))

    def response(self, status: str, **more) -> r.Response:
        return r.Response(
            id="resp_1",
            object="response",
            created_at=1700000000,
            model="gpt-5",
            output=self.output,
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
            status=status,
            **more,
        )

    def added(self, item):
        index = len(self.output)
        self.send(r.ResponseOutputItemAddedEvent, "response.output_item.added", item=item, output_index=index)

    def done(self, item):
        index = len(self.output)
        self.output.append(item)
        self.send(r.ResponseOutputItemDoneEvent, "response.output_item.done", item=item, output_index=index)

    def thought(self, part: Thought):
        at = {"item_id": "rs_1", "output_index": len(self.output), "summary_index": 0}
        self.added(r.ResponseReasoningItem(id="rs_1", type="reasoning", summary=[]))
        empty = SummaryPart(type="summary_text", text="")
        self.send(r.ResponseReasoningSummaryPartAddedEvent, "response.reasoning_summary_part.added", part=empty, **at)
        for text in part.pieces:
            self.send(r.ResponseReasoningSummaryTextDeltaEvent, "response.reasoning_summary_text.delta", delta=text, **at)
        whole = "".join(part.pieces)
        self.send(r.ResponseReasoningSummaryTextDoneEvent, "response.reasoning_summary_text.done", text=whole, **at)
        ended = SummaryDone(type="summary_text", text=whole)
        self.send(r.ResponseReasoningSummaryPartDoneEvent, "response.reasoning_summary_part.done", part=ended, **at)
        summary = [Summary(type="summary_text", text=whole)]
        self.done(r.ResponseReasoningItem(id="rs_1", type="reasoning", summary=summary, encrypted_content=part.signature))

    def message(self, parts: list, open_ended: bool):
        at = {"item_id": "msg_1", "output_index": len(self.output), "content_index": 0}
        start = {"id": "msg_1", "type": "message", "role": "assistant"}
        self.added(r.ResponseOutputMessage(status="in_progress", content=[], **start))
        empty = r.ResponseOutputText(type="output_text", text="", annotations=[])
        self.send(r.ResponseContentPartAddedEvent, "response.content_part.added", part=empty, **at)
        whole, annotations = "", []
        for part in parts:
            pieces = part.pieces if isinstance(part, Said) else (part.text,)
            begin = len(whole)
            for text in pieces:
                whole += text
                self.send(r.ResponseTextDeltaEvent, "response.output_text.delta", delta=text, logprobs=[], **at)
            if isinstance(part, Cited):
                cited = AnnotationURLCitation(
                    type="url_citation", url=part.url, title=part.title, start_index=begin, end_index=len(whole)
                )
                where = {"annotation": cited.model_dump(), "annotation_index": len(annotations)}
                annotations.append(cited)
                kind = "response.output_text.annotation.added"
                self.send(r.ResponseOutputTextAnnotationAddedEvent, kind, **where, **at)
        if open_ended:
            return
        text = r.ResponseOutputText(type="output_text", text=whole, annotations=annotations)
        self.send(r.ResponseTextDoneEvent, "response.output_text.done", text=whole, logprobs=[], **at)
        self.send(r.ResponseContentPartDoneEvent, "response.content_part.done", part=text, **at)
        self.done(r.ResponseOutputMessage(status="completed", content=[text], **start))

    def call(self, call: Call, open_ended: bool):
        item_id = f"fc_{call.id}"
        at = {"item_id": item_id, "output_index": len(self.output)}
        start = {"id": item_id, "type": "function_call", "call_id": call.id, "name": call.name}
        self.added(r.ResponseFunctionToolCall(arguments="", status="in_progress", **start))
        for text in call.pieces:
            kind = "response.function_call_arguments.delta"
            self.send(r.ResponseFunctionCallArgumentsDeltaEvent, kind, delta=text, **at)
        if open_ended:
            return
        kind = "response.function_call_arguments.done"
        # The vendor's type has a name here in some releases and none in others.
        named = {"name": call.name} if "name" in r.ResponseFunctionCallArgumentsDoneEvent.model_fields else {}
        self.send(r.ResponseFunctionCallArgumentsDoneEvent, kind, arguments=call.args, **named, **at)
        self.done(r.ResponseFunctionToolCall(arguments=call.args, status="completed", **start))


def render(story: Story):
    stream = Stream()
    stream.send(r.ResponseCreatedEvent, "response.created", response=stream.response("in_progress"))
    if story.error == "overloaded":
        stream.send(r.ResponseErrorEvent, "error", code="rate_limit_exceeded", message="Try later", param=None)
        return stream.events
    stream.send(r.ResponseInProgressEvent, "response.in_progress", response=stream.response("in_progress"))
    text = [part for part in story.parts if isinstance(part, Said | Cited)]
    open_ended = bool(story.cut or story.error)
    for part in story.parts:
        match part:
            case Thought():
                stream.thought(part)
            case Call():
                stream.call(part, open_ended)
            case _ if text:
                stream.message(text, open_ended)
                text = []
    if story.error:
        failed = stream.response("failed", error={"code": "server_error", "message": "It broke"})
        stream.send(r.ResponseFailedEvent, "response.failed", response=failed)
    elif not story.cut:
        _end(stream, story)
    return stream.events


def _end(stream: Stream, story: Story):
    input, output = story.tokens
    usage = r.ResponseUsage(
        input_tokens=input,
        output_tokens=output,
        total_tokens=input + output,
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
    )
    reason = INCOMPLETE.get(story.finish)
    if reason:
        response = stream.response("incomplete", usage=usage, incomplete_details={"reason": reason})
        stream.send(r.ResponseIncompleteEvent, "response.incomplete", response=response)
    else:
        response = stream.response("completed", usage=usage)
        stream.send(r.ResponseCompletedEvent, "response.completed", response=response)


def expect(story: Story):
    return meaning(story, spans=True)


def refusals():
    return of_chat.refusals()

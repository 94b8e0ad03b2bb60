"""The official OpenAI package for Python, unchanged, against a running gateway."""

import json
import os
import sys
import traceback

import openai
from openai import OpenAI
from pydantic import BaseModel

URL = os.environ["GATEWAY"] + "/v1"
client = OpenAI(base_url=URL, api_key=os.environ["SECRET"], max_retries=0)
MODEL = "story"


def user(content):
    return {"role": "user", "content": content}


def fn(name):
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was not raised")


def agents_are_models():
    assert "story" in [entry.id for entry in client.models.list()]
    raises(openai.NotFoundError, lambda: client.models.retrieve("nobody"))


def chat_whole_and_streamed():
    messages = [user("think hm\nsay Grüße 😀, 世界")]
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    assert whole.choices[0].message.content == "Grüße 😀, 世界"
    assert whole.usage.total_tokens > 0
    with client.chat.completions.stream(model=MODEL, messages=messages) as stream:
        heard = "".join(event.delta for event in stream if event.type == "content.delta")
        assert heard == "Grüße 😀, 世界", heard


def chat_client_tools():
    tools = [fn("left"), fn("right")]
    messages = [user("call left {}\ncall lucky {}\ncall right {}")]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    assert first.choices[0].finish_reason == "tool_calls"
    calls = first.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["left", "right"]
    messages.append(first.choices[0].message)
    for call in calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": call.function.name + "!"})
    second = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
    said = second.choices[0].message.content
    assert "left!" in said and "right!" in said and "42" in said, said


def chat_streamed_calls():
    stream = client.chat.completions.create(
        model=MODEL, messages=[user("call left {}")], tools=[fn("left")], stream=True
    )
    chunks = list(stream)
    calls = [c for chunk in chunks for choice in chunk.choices for c in choice.delta.tool_calls or []]
    assert [call.function.name for call in calls] == ["left"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def chat_errors():
    def ask(**more):
        body = {"model": MODEL, "messages": [user("hi")], **more}
        return client.chat.completions.create(**body)

    raises(openai.NotFoundError, lambda: ask(model="nobody"))
    raises(openai.BadRequestError, lambda: ask(tool_choice="required"))
    error = raises(openai.InternalServerError, lambda: ask(messages=[user("fail")]))
    assert error.code == "model_request_refused", error
    raises(openai.APIError, lambda: list(ask(messages=[user("fail")], stream=True)))
    stranger = OpenAI(base_url=URL, api_key="wrong", max_retries=0)
    raises(openai.AuthenticationError, lambda: stranger.models.list())


class Answer(BaseModel):
    a: int


def chat_parsed():
    whole = client.chat.completions.parse(
        model=MODEL, messages=[user('say {"a":1}')], response_format=Answer
    )
    assert whole.choices[0].message.parsed == Answer(a=1)


def responses_whole_streamed_and_chained():
    whole = client.responses.create(model=MODEL, input="say Grüße 😀")
    assert whole.output_text == "Grüße 😀"
    with client.responses.stream(model=MODEL, input="say 世界", previous_response_id=whole.id) as stream:
        heard = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        last = stream.get_final_response()
    assert heard == last.output_text == "世界"
    parsed = client.responses.parse(model=MODEL, input='say {"a":2}', text_format=Answer)
    assert parsed.output_parsed == Answer(a=2)


def responses_calls_and_approvals():
    tool = {"type": "function", "name": "left", "parameters": fn("left")["function"]["parameters"], "strict": False}
    first = client.responses.create(model=MODEL, input="call left {}", tools=[tool])
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps({"n": "é"})}
    second = client.responses.create(
        model=MODEL, input=[output], tools=[tool], previous_response_id=first.id
    )
    assert "é" in second.output_text, second.output_text
    asked = client.responses.create(model=MODEL, input='call delete_thing {"name":"a"}')
    request = next(item for item in asked.output if item.type == "mcp_approval_request")
    no = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": False, "reason": "Not today"}
    done = client.responses.create(model=MODEL, input=[no], previous_response_id=asked.id)
    assert "Not today" in done.output_text, done.output_text


STORIES = [
    agents_are_models,
    chat_whole_and_streamed,
    chat_client_tools,
    chat_streamed_calls,
    chat_errors,
    chat_parsed,
    responses_whole_streamed_and_chained,
    responses_calls_and_approvals,
]

failed = False
for story in STORIES:
    try:
        story()
        print("ok", story.__name__)
    except Exception:
        failed = True
        print("FAILED", story.__name__)
        traceback.print_exc()
sys.exit(failed)

"""The official Python client of A2A 0.3 against a gateway: base URL and key."""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    Message,
    Part,
    Role,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TextPart,
)

BASE, KEY = sys.argv[1], sys.argv[2]
CLIENT_TOOLS = "urn:toolyard:a2a:ext/client-tools/v1"


def said(*parts, **fields):
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=p) for p in parts], **fields
    )


async def last(stream):
    task, text, chunks = None, "", 0
    async for event in stream:
        task, update = event
        if isinstance(update, TaskArtifactUpdateEvent):
            chunks += 1
            text += "".join(p.root.text for p in update.artifact.parts)
    return task, text, chunks


async def main():
    headers = {"x-secret-key": KEY, "X-A2A-Extensions": CLIENT_TOOLS}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        card = await A2ACardResolver(http, BASE).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
        task, text, chunks = await last(client.send_message(said(TextPart(text="say hello"))))
        assert (task.status.state, text) == (TaskState.completed, "hello"), (task, text)
        assert chunks >= 1
        again = await client.get_task(TaskQueryParams(id=task.id))
        assert again.artifacts[0].parts[0].root.text == "hello", again

        tool = {
            "name": "lookup",
            "description": "Looks somebody up",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        offer = said(
            TextPart(text='call lookup {"name":"ann"}'),
            extensions=[CLIENT_TOOLS],
            metadata={CLIENT_TOOLS: {"tools": [tool]}},
        )
        task, _, _ = await last(client.send_message(offer))
        assert task.status.state == TaskState.input_required, task
        call = task.status.message.parts[1].root.data
        assert (call["toolName"], call["arguments"]) == ("lookup", {"name": "ann"}), call
        result = {
            "type": "tool-result",
            "toolCallId": call["toolCallId"],
            "toolName": "lookup",
            "success": True,
            "result": [1, 2],
        }
        answer = said(DataPart(data=result), task_id=task.id, context_id=task.context_id)
        done, text, _ = await last(client.send_message(answer))
        assert (done.id, done.status.state) == (task.id, TaskState.completed), done
        assert "Tool lookup answered" in text, text

        more = said(TextPart(text='call lookup {"name":"bob"}'), context_id=task.context_id)
        task, _, _ = await last(client.send_message(more))
        canceled = await client.cancel_task(TaskIdParams(id=task.id))
        assert canceled.status.state == TaskState.canceled, canceled
    print("all well")


asyncio.run(main())

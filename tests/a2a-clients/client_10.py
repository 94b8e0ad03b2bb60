"""The official Python client of A2A 1.0 against a gateway: base URL and key."""

import asyncio
import json
import sys
import urllib.request
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK

BASE, KEY = sys.argv[1], sys.argv[2]
CLIENT_TOOLS = "urn:toolyard:a2a:ext/client-tools/v1"


def said(text=None, **fields):
    parts = [Part(text=text)] if text is not None else []
    return Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **fields)


def verifier(card_url):
    origin = "/".join(card_url.split("/")[:3])
    keys = json.load(urllib.request.urlopen(f"{origin}/.well-known/jwks.json"))["keys"]

    def key(kid, jku):
        assert jku == f"{origin}/.well-known/jwks.json", jku
        return PyJWK(next(k for k in keys if k["kid"] == kid))

    return create_signature_verifier(key, ["EdDSA"])


async def events(stream):
    return [event async for event in stream]


async def talk(binding):
    headers = {"x-secret-key": KEY, "A2A-Extensions": CLIENT_TOOLS}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        card = await A2ACardResolver(http, BASE).get_agent_card()
        verifier(BASE)(card)
        config = ClientConfig(httpx_client=http, streaming=True, supported_protocol_bindings=[binding])
        client = ClientFactory(config).create(card)

        got = await events(client.send_message(SendMessageRequest(message=said("say hello"))))
        assert got[0].HasField("task"), got[0]
        assert got[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, got[-1]
        text = "".join(p.text for e in got if e.HasField("artifact_update") for p in e.artifact_update.artifact.parts)
        assert text == "hello", text
        task = await client.get_task(GetTaskRequest(id=got[0].task.id))
        assert task.artifacts[0].parts[0].text == "hello"
        assert task.history[0].parts[0].text == "say hello"

        # A tool of this program, by the extension.
        offer = said("call lookup {\"name\":\"ann\"}", extensions=[CLIENT_TOOLS])
        tool = {
            "name": "lookup",
            "description": "Looks somebody up",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        ParseDict({CLIENT_TOOLS: {"tools": [tool]}}, offer.metadata)
        got = await events(client.send_message(SendMessageRequest(message=offer)))
        status = got[-1].status_update.status
        assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED, got[-1]
        call = MessageToDict(status.message.parts[1].data)
        assert (call["toolName"], call["arguments"]) == ("lookup", {"name": "ann"}), call
        paused = got[0].task

        # Somebody else follows the paused task over its pause.
        follower = client.subscribe(SubscribeToTaskRequest(id=paused.id))
        first = await anext(follower)
        assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, first

        answer = said(task_id=paused.id, extensions=[CLIENT_TOOLS])
        part = Part()
        ParseDict(
            {
                "type": "tool-result",
                "toolCallId": call["toolCallId"],
                "toolName": "lookup",
                "success": True,
                "result": {"age": 7},
            },
            part.data,
        )
        answer.parts.append(part)
        got = await events(client.send_message(SendMessageRequest(message=answer)))
        assert got[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, got
        rest = await events(follower)
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, rest
        task = await client.get_task(GetTaskRequest(id=paused.id))
        assert "Tool lookup answered" in task.artifacts[-1].parts[0].text, task

        # A second task of the same conversation, ended by hand.
        again = said("call lookup {\"name\":\"bob\"}", context_id=paused.context_id)
        got = await events(client.send_message(SendMessageRequest(message=again)))
        task = await client.cancel_task(CancelTaskRequest(id=got[0].task.id))
        assert task.status.state == TaskState.TASK_STATE_CANCELED, task
        listed = await client.list_tasks(ListTasksRequest(context_id=paused.context_id))
        assert {t.id for t in listed.tasks} == {paused.id, task.id}, listed
        try:
            await client.get_task(GetTaskRequest(id="run_nobody"))
            raise SystemExit("an unknown task was found")
        except Exception as error:
            assert "not found" in str(error).lower(), error


async def main():
    for binding in ["JSONRPC", "HTTP+JSON"]:
        await talk(binding)
    print("all well")


asyncio.run(main())

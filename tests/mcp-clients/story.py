"""The official MCP client for Python against an agent of the gateway, in both eras."""

import asyncio
import os

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

URL = os.environ["GATEWAY"] + "/mcp/story"
HEADERS = {"Authorization": "Bearer " + os.environ["SECRET"]}


async def allow(_context, params):
    assert "delete_thing" in params.message, params
    return ElicitResult(action="accept", content={"decision": "allow"})


async def tell(mode: str) -> None:
    http = httpx2.AsyncClient(headers=HEADERS, timeout=60, trust_env=False)
    heard = []

    async def progress(now, _total, message):
        heard.append((now, message))

    transport = streamable_http_client(URL, http_client=http)
    async with Client(transport, mode=mode, elicitation_callback=allow) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["ask_story", "delete_thing", "lucky"], listed
        lucky = await client.call_tool("lucky", {})
        assert lucky.structured_content["number"] == 42, lucky
        asked = await client.call_tool("ask_story", {"message": "call lucky {}"}, progress_callback=progress)
        assert asked.structured_content["status"] == "completed", asked
        assert "42" in asked.content[0].text, asked
        assert any("lucky" in message for _, message in heard), heard
        gone = await client.call_tool("ask_story", {"message": "call delete_thing {}"})
        assert "gone" in gone.content[0].text, gone
    print("ok", mode)


async def main() -> None:
    for mode in ("legacy", "2026-07-28", "auto"):
        await tell(mode)
    print("all well")


asyncio.run(main())

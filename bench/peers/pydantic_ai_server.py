"""Pydantic AI behind Starlette: an agent dispatched by its AG-UI adapter. As in
its documents, the server keeps nothing: each request brings the conversation,
and the client's tool is one that the request brings.

    python pydantic_ai_server.py --listen 127.0.0.1:0 --upstream 127.0.0.1:9000
"""

import argparse

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


def app(upstream: str) -> Starlette:
    provider = OpenAIProvider(base_url=f"http://{upstream}/v1", api_key="none")
    agent = Agent(OpenAIChatModel("mock", provider=provider), instructions="You are a helpful assistant.")

    @agent.tool_plain
    async def get_time() -> dict:
        """The current time."""
        return {"time": "12:00"}

    async def ready(_):
        return JSONResponse({})

    async def run(request):
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/ready", ready), Route("/", run, methods=["POST"])])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--upstream", required=True)
    args = parser.parse_args()
    host, port = args.listen.split(":")
    uvicorn.run(
        app(args.upstream),
        host=host,
        port=int(port),
        log_level="warning",
        backlog=4096,
        # The client keeps its connections longer than the default of five seconds.
        timeout_keep_alive=120,
    )


main()

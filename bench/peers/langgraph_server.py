"""LangGraph behind FastAPI: the agent graph of its documents with checkpoints in
SQLite, streamed as server-sent events. The client's tool is an `interrupt`: the
run lies in the database until a `resume` comes.

    python langgraph_server.py --listen 127.0.0.1:0 --upstream 127.0.0.1:9000 --data FOLDER
"""

import argparse
import json
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from langchain_core.messages import AIMessageChunk, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt


@tool
async def get_time() -> dict:
    """The current time."""
    return {"time": "12:00"}


@tool
async def read_screen() -> dict:
    """What the user sees."""
    return interrupt({"tool": "read_screen"})


def build(upstream: str, checkpointer: AsyncSqliteSaver):
    tools = [get_time, read_screen]
    model = ChatOpenAI(
        model="mock",
        base_url=f"http://{upstream}/v1",
        api_key="none",
        streaming=True,
        stream_usage=True,
        max_retries=0,
    ).bind_tools(tools)
    system = SystemMessage("You are a helpful assistant.")

    async def ask(state: MessagesState):
        return {"messages": [await model.ainvoke([system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer)


def event(name: str, value) -> str:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


async def follow(graph, thread: str, given):
    """The run's text as it comes, and how it ended."""
    config = {"configurable": {"thread_id": thread}}
    paused = False
    parts = graph.astream(given, config, stream_mode=["messages", "updates"], durability="sync")
    async for mode, part in parts:
        if mode == "messages":
            message, _ = part
            if isinstance(message, AIMessageChunk) and message.content:
                yield event("message", {"content": message.content})
        elif "__interrupt__" in part:
            paused = True
            yield event("interrupt", [i.value for i in part["__interrupt__"]])
    yield event("paused" if paused else "end", {})


def app(upstream: str, folder: Path) -> FastAPI:
    graphs = {}

    @asynccontextmanager
    async def lifespan(_: FastAPI):
        async with AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
            await saver.setup()
            graphs["agent"] = build(upstream, saver)
            yield

    server = FastAPI(lifespan=lifespan)

    @server.get("/ready")
    async def ready():
        return {}

    @server.post("/threads/{thread}/runs/stream")
    async def run(thread: str, request: Request):
        asked = await request.json()
        given = Command(resume=asked["resume"]) if "resume" in asked else {"messages": asked["messages"]}
        parts = follow(graphs["agent"], thread, given)
        return StreamingResponse(parts, media_type="text/event-stream")

    @server.post("/threads/{thread}/state")
    async def add(thread: str, request: Request):
        asked = await request.json()
        config = {"configurable": {"thread_id": thread}}
        await graphs["agent"].aupdate_state(config, {"messages": asked["messages"]}, as_node="model")
        return {}

    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    host, port = args.listen.split(":")
    uvicorn.run(
        app(args.upstream, args.data),
        host=host,
        port=int(port),
        log_level="warning",
        backlog=4096,
        # The client keeps its connections longer than the default of five seconds.
        timeout_keep_alive=120,
    )


main()

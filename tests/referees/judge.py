"""Judges request bodies by the vendors' own published types.

Reads lines `{"name", "vendor", "body"}` and writes a line `{"name", "refused"}`
for each, `refused` being `null` or the reason. What types cannot say but every
vendor refuses (tool names, calls without results) is in `habits.py`.
"""

import json
import sys
import typing


def _typed_dicts_in_full():
    """The vendors write `Iterable` for lists, which pydantic would only look
    at when somebody iterates. As lists they are checked to the bottom."""
    kept, typing.Iterable = typing.Iterable, typing.List
    try:
        import anthropic.types  # noqa: F401
        import openai.types.chat  # noqa: F401
        import openai.types.responses  # noqa: F401
    finally:
        typing.Iterable = kept


_typed_dicts_in_full()

from anthropic.types.message_create_params import MessageCreateParamsStreaming  # noqa: E402
from google.genai import types as google  # noqa: E402
from openai.types import EmbeddingCreateParams  # noqa: E402
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming  # noqa: E402
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming  # noqa: E402
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming  # noqa: E402
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError  # noqa: E402
from typing_extensions import is_typeddict  # noqa: E402

import habits  # noqa: E402
from shapes import check, model  # noqa: E402


def _forbid_unknown_fields():
    for module in [m for name, m in sys.modules.items() if name.startswith(("openai.types", "anthropic.types"))]:
        for value in vars(module).values():
            # A class that says nothing of others lets every field pass.
            if is_typeddict(value) and "__pydantic_config__" not in vars(value):
                value.__pydantic_config__ = ConfigDict(extra="forbid")


_forbid_unknown_fields()


class GenerationConfig(google.GenerationConfig):
    """The package has this field beside the others and sends it among them."""

    image_config: google.ImageConfig | None = None


class GeminiRequest(BaseModel):
    """The body of REST, which the package builds field by field."""

    model_config = ConfigDict(extra="forbid")
    contents: list[google.Content]
    systemInstruction: google.Content | None = None
    tools: list[google.Tool] | None = None
    toolConfig: google.ToolConfig | None = None
    generationConfig: GenerationConfig | None = None
    safetySettings: list[google.SafetySetting] | None = None
    cachedContent: str | None = None


class GeminiEmbedding(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model: str
    content: google.Content
    taskType: str | None = None
    title: str | None = None
    outputDimensionality: int | None = None


class GeminiEmbeddings(BaseModel):
    model_config = ConfigDict(extra="forbid")
    requests: list[GeminiEmbedding]


TYPES = {
    "openai-chat": CompletionCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
    "gemini": GeminiRequest,
    "openai-embeddings": EmbeddingCreateParams,
    "openai-images": ImageGenerateParamsNonStreaming,
    "gemini-embeddings": GeminiEmbeddings,
}
ADAPTERS: dict[str, TypeAdapter] = {}


def refusal(vendor: str, body) -> str | None:
    if vendor == "bedrock":
        shape = model().operation_model("ConverseStream").input_shape
        # The model's name is part of the address.
        complaints = check(shape, body | {"modelId": "anthropic.claude"})
    else:
        if vendor not in ADAPTERS:
            ADAPTERS[vendor] = TypeAdapter(TYPES[vendor])
        complaints = _complaints(ADAPTERS[vendor], body)
    # Habits are read from bodies whose shape is right.
    return "; ".join(complaints or habits.broken(vendor, body)) or None


def _complaints(adapter: TypeAdapter, body) -> list[str]:
    try:
        # As JSON and strict: text is no number, and bytes are base64 text.
        adapter.validate_json(json.dumps(body), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        return found[:12]
    return []


if __name__ == "__main__":
    for line in sys.stdin:
        case = json.loads(line)
        verdict = {"name": case["name"], "refused": refusal(case["vendor"], case["body"])}
        print(json.dumps(verdict), flush=True)

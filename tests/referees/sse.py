"""Events as servers send them."""

import json

from pydantic import BaseModel


def event(data: BaseModel | dict, name: str | None = None) -> bytes:
    """One event. Fields that nobody set are left out, as the vendors do."""
    if isinstance(data, BaseModel):
        data = data.model_dump(mode="json", by_alias=True, exclude_unset=True)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()

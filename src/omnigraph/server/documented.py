"""Request bodies in OpenAPI, from the same models that check them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What FastAPI adds to a route's description, since bodies are read by `server/bodies`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

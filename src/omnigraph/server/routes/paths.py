"""Parts of paths that more than one family has."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.routing import APIRoute

from omnigraph.server.rules import Rules

GraphId = Annotated[str, Path(alias="g", description="graph id")]


def family(tag: str, prefix: str = "") -> APIRouter:
    """A router whose operations are called as their functions."""

    def name(route: APIRoute) -> str:
        return route.name

    return APIRouter(prefix=prefix, tags=[tag], generate_unique_id_function=name)


def demanding(**demanded: Any) -> list[Any]:
    """The rules of one route, for its decorator."""
    return [Depends(Rules(**demanded))]

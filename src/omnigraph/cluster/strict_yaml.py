"""YAML as far as a configuration may use it: one document of plain values, no anchors, no merge or repeated keys."""

from __future__ import annotations

from typing import Any, cast

import yaml


class NotPlainYaml(ValueError):
    """The text says where it went wrong and repeats nothing of the file."""


class _Plain(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = cast(Any, self).peek_event()
        if getattr(event, "anchor", None) is not None:  # an alias names its anchor too
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is no plain text", problem_mark=key.start_mark)
            if key.value == "<<":
                raise yaml.MarkedYAMLError(problem="merge keys are not allowed", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem="a key is repeated", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_OURS = {
    "anchors and aliases are not allowed",
    "a key is no plain text",
    "merge keys are not allowed",
    "a key is repeated",
}


def plain_yaml(text: str) -> Any:
    """The value of the document. Raises NotPlainYaml."""
    try:
        return yaml.load(text, _Plain)
    except yaml.YAMLError as error:
        raise NotPlainYaml(_told(error)) from None
    except RecursionError:
        raise NotPlainYaml("it is nested too deeply") from None
    except ValueError:  # a date that is none, a number of more digits than Python reads
        raise NotPlainYaml("it holds a number or date that can't be read") from None


def _told(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    words = problem if problem in _OURS else "it can't be read"
    return words if mark is None else f"{words}: line {mark.line + 1}, column {mark.column + 1}"

"""What `import omnigraph` promises: every public name is there, sorted, lazily loaded and documented."""

from __future__ import annotations

import inspect

import pytest

import omnigraph
from omnigraph import errors


def test_the_public_names_are_sorted_and_complete() -> None:
    assert list(omnigraph.__all__) == sorted(omnigraph.__all__)
    assert dir(omnigraph) == sorted(omnigraph.__all__)


@pytest.mark.parametrize("name", [name for name in omnigraph.__all__ if not name.startswith("__")])
def test_a_public_name_is_there_and_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(omnigraph, name))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        omnigraph.no_such_name  # noqa: B018 - reading it is the test


def test_the_error_tree_in_the_docstring_names_every_error() -> None:
    tree = (errors.__doc__ or "").split("An error answers")[0]
    public = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OmnigraphError) and not name.startswith("_")
    }
    drawn = set("".join(letter if letter.isalnum() else " " for letter in tree).split())
    assert public <= drawn


def test_every_error_has_one_root() -> None:
    leaves = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(leaf, errors.OmnigraphError) for leaf in leaves)

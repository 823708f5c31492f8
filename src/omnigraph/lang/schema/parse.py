"""`.pg` text -> syntax tree. Knows the form of a schema and none of its meaning: every fault here is `S001`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal, TypeVar, cast

from omnigraph.errors import InvalidSchema
from omnigraph.lang.diagnostics import Span
from omnigraph.lang.lalr import Grammar, Leaf, Tree, span_of
from omnigraph.lang.lexical import (
    Lexer,
    Lexis,
    Token,
    TokenKind,
    decimal_value,
    decode_source,
    integer_value,
    string_value,
)
from omnigraph.lang.schema.syntax import (
    CardDecl,
    CheckDecl,
    Declaration,
    EdgeDecl,
    EnumSyntax,
    GroupDecl,
    InterfaceDecl,
    ListSyntax,
    NamedValue,
    NodeDecl,
    Note,
    PropertyDecl,
    RangeDecl,
    ScalarSyntax,
    SchemaSyntax,
    TypeForm,
    TypeSyntax,
    Value,
    VectorSyntax,
    Word,
)

_PUNCTUATION = {
    "{": "_LBRACE",
    "}": "_RBRACE",
    "(": "_LPAR",
    ")": "_RPAR",
    "[": "_LSQB",
    "]": "_RSQB",
    ":": "_COLON",
    ",": "_COMMA",
    "=": "_EQUAL",
    "?": "NULLABLE",
    "->": "_ARROW",
    "..": "_DOTS",
}
_KEYWORDS = {
    "interface": "_INTERFACE",
    "node": "_NODE",
    "edge": "_EDGE",
    "implements": "_IMPLEMENTS",
    "enum": "_ENUM",
    "Vector": "_VECTOR",
    "true": "TRUE",
    "false": "FALSE",
}
# Annotations that open a rule if `(` follows. Without it the first three are notes, the others nothing.
_RULES = {
    "@key": "KEY",
    "@unique": "UNIQUE",
    "@index": "INDEX",
    "@range": "RANGE",
    "@check": "CHECK",
    "@card": "CARD",
}
_NOTES = ("@key", "@unique", "@index")
_ENDS = {"@src": "SRC", "@dst": "DST"}
_SPELLINGS = {
    "NAME": "a name",
    "TYPE": "a type name",
    **{terminal: f"`{word}`" for word, terminal in _KEYWORDS.items()},
    "VARIANT": "a variant",
    "INT": "an integer",
    "DEC": "a decimal",
    "STRING": "a string",
    "META": "an annotation",
    **{terminal: f"`{word}(`" for word, terminal in _RULES.items()},
    **{terminal: f"`{sign}`" for sign, terminal in _PUNCTUATION.items()},
}

SCHEMA_LEXIS = Lexis("S001", InvalidSchema, tuple(_PUNCTUATION))


def parse_schema(source: str | bytes) -> SchemaSyntax:
    """The syntax tree of a schema text.

    Raises `InvalidSchema` with `S001` where the text stops being one, at the first such place.
    """
    text = decode_source(source, SCHEMA_LEXIS)
    lexer = Lexer(text, SCHEMA_LEXIS)
    tree = _grammar().parse(lexer, _next_terminal)
    return SchemaSyntax(text, tuple(_declaration(child, lexer) for child in _trees(tree.children)))


@cache
def _grammar() -> Grammar:
    return Grammar(__package__ or "omnigraph.lang.schema", "pg.lark", _SPELLINGS)


def _next_terminal(lexer: Lexer, offset: int, takes: Callable[[str], bool]) -> tuple[str, Token]:
    """The next token and its terminal, by what the grammar would take here."""
    token = lexer.variant_at(offset) if takes("VARIANT") else lexer.token_at(offset)
    if token.kind is TokenKind.PUNCT:
        return _PUNCTUATION[token.text], token
    if token.kind is TokenKind.META:
        return _annotation(token, lexer), token
    keyword = _KEYWORDS.get(token.text)
    if keyword is not None and takes(keyword):
        return keyword, token
    return str(token.kind), token


def _annotation(token: Token, lexer: Lexer) -> str:
    if token.text in _ENDS:
        return _ENDS[token.text]
    if token.text not in _RULES:
        return "META"
    if lexer.token_at(token.span.end).text == "(":
        return _RULES[token.text]
    if token.text in _NOTES:
        return "META"
    raise lexer.refusal(token.span, f"`{token.text}` without its arguments", expected=f"`{token.text}(`")


# --- the tree


def _declaration(tree: Tree, lexer: Lexer) -> Declaration:
    match tree.data:
        case "interface":
            name, *body = tree.children
            return InterfaceDecl(_word(name), _only(PropertyDecl, _items(body, lexer)), span_of(tree))
        case "node":
            return _node(tree, lexer)
        case _:
            return _edge(tree, lexer)


def _node(tree: Tree, lexer: Lexer) -> NodeDecl:
    items = _items(tree.children[1:], lexer)
    implements = [child for child in _trees(tree.children) if child.data == "implements"]
    return NodeDecl(
        name=_word(tree.children[0]),
        notes=_only(Note, items),
        implements=tuple(_word(leaf) for child in implements for leaf in child.children),
        properties=_only(PropertyDecl, items),
        groups=_only(GroupDecl, items),
        ranges=_only(RangeDecl, items),
        checks=_only(CheckDecl, items),
        span=span_of(tree),
    )


def _edge(tree: Tree, lexer: Lexer) -> EdgeDecl:
    name, source, target, *rest = tree.children
    items = _items(rest, lexer)
    return EdgeDecl(
        name=_word(name),
        source=_word(source),
        target=_word(target),
        notes=_only(Note, items),
        cards=_only(CardDecl, items),
        properties=_only(PropertyDecl, items),
        groups=_only(GroupDecl, items),
        span=span_of(tree),
    )


Item = PropertyDecl | GroupDecl | RangeDecl | CheckDecl | CardDecl | Note
ItemT = TypeVar("ItemT", bound=Item)


def _items(nodes: Iterable[Tree | Leaf], lexer: Lexer) -> list[Item]:
    """What the parts of a declaration say, notes of the declaration itself included."""
    items: list[Item] = []
    for node in _trees(nodes):
        match node.data:
            case "property":
                items.append(_property(node, lexer))
            case "group":
                items.append(_group(node))
            case "range":
                items.append(_range(node))
            case "check":
                items.append(CheckDecl(_word(node.children[1]), _value(node.children[2]), span_of(node)))
            case "card":
                items.append(_card(node, lexer))
            case "note":
                items.append(_note(node))
            case "notes" | "edge_notes":
                items.extend(_items(node.children, lexer))
            case _:
                pass  # `implements`, which `_node` reads
    return items


def _only(kind: type[ItemT], items: list[Item]) -> tuple[ItemT, ...]:
    return tuple(item for item in items if isinstance(item, kind))


def _property(tree: Tree, lexer: Lexer) -> PropertyDecl:
    name, written_type, notes = tree.children
    return PropertyDecl(
        name=_word(name),
        type=_type(cast("Tree", written_type), lexer),
        notes=_only(Note, _items(cast("Tree", notes).children, lexer)),
        span=span_of(tree),
    )


def _type(tree: Tree, lexer: Lexer) -> TypeSyntax:
    return TypeSyntax(_type_form(cast("Tree", tree.children[0]), lexer), len(tree.children) > 1, span_of(tree))


def _type_form(tree: Tree, lexer: Lexer) -> TypeForm:
    depth = 0
    while tree.data == "list":  # no recursion: a text may nest as deep as it likes before it is refused
        tree = cast("Tree", tree.children[0])
        depth += 1
    form: TypeForm
    match tree.data:
        case "scalar":
            form = ScalarSyntax(_word(tree.children[0]))
        case "vector":
            form = VectorSyntax(_unsigned(tree.children[0], lexer))
        case _:
            form = EnumSyntax(tuple(_word(leaf) for leaf in tree.children))
    for _ in range(depth):
        form = ListSyntax(form)
    return form


def _group(tree: Tree) -> GroupDecl:
    rule, *members = tree.children
    kind = cast("Literal['key', 'unique', 'index']", _word(rule).text[1:])
    return GroupDecl(kind, tuple(_word(member) for member in members), span_of(tree))


def _range(tree: Tree) -> RangeDecl:
    bounds = {str(child.data): _value(child.children[0]) for child in _trees(tree.children)}
    return RangeDecl(_word(tree.children[1]), bounds.get("low"), bounds.get("high"), span_of(tree))


def _card(tree: Tree, lexer: Lexer) -> CardDecl:
    low, *high = [cast("int", _unsigned(leaf, lexer).value) for leaf in tree.children[1:]]
    return CardDecl(low, high[0] if high else None, span_of(tree))


def _note(tree: Tree) -> Note:
    name, *arguments = tree.children
    first = arguments[0] if arguments else None
    return Note(
        name=_word(name).text[1:],
        argument=None if first is None else _argument(first),
        named=tuple(NamedValue(_word(n.children[0]), _value(n.children[1])) for n in _trees(arguments)),
        span=span_of(tree),
    )


def _argument(leaf: Tree | Leaf) -> Value | Word:
    return _word(leaf) if isinstance(leaf, Leaf) and leaf.type == "NAME" else _value(leaf)


def _value(node: Tree | Leaf) -> Value:
    leaf = _leaf(node)
    text, span = str(leaf), span_of(leaf)
    match leaf.type:
        case "STRING":
            return Value(string_value(text), span)
        case "INT":
            return Value(integer_value(text), span)
        case "DEC":
            return Value(decimal_value(text), span)
        case _:
            return Value(text == "true", span)


def _unsigned(node: Tree | Leaf, lexer: Lexer) -> Value:
    value = _value(node)
    if str(node).startswith("-"):
        sign = Span(value.span.start, value.span.start + 1)
        raise lexer.refusal(sign, "unexpected `-`", expected="an integer without a sign")
    return value


def _word(node: Tree | Leaf) -> Word:
    leaf = _leaf(node)
    return Word(str(leaf), span_of(leaf))


def _leaf(node: Tree | Leaf) -> Leaf:
    """The grammar puts a token here."""
    return cast("Leaf", node)


def _trees(nodes: Iterable[Tree | Leaf]) -> list[Tree]:
    return [node for node in nodes if not isinstance(node, Leaf)]

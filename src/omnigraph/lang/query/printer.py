"""Canonical text (languages.md 10.1): the one spelling of a tree. It names columns and is what explain and diagnostics
show.

`parse(print(tree)) == tree`, and two expressions are tree-equal exactly if their canonical texts are equal. The layout
of whole queries is ours alone: two spaces, one clause, item or assignment to a line where there are several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import assert_never

from omnigraph.lang.lexical import string_literal
from omnigraph.lang.query.brackets import AND, ATOM, NOT, OR, TEST, within
from omnigraph.lang.query.syntax import (
    RESERVED,
    BareName,
    BareSystem,
    BlockClause,
    BranchStatement,
    Call,
    Clause,
    Comparison,
    Conjunction,
    DateLiteral,
    Declaration,
    DeleteSyntax,
    Disjunction,
    ExplainStatement,
    Expression,
    FoldClause,
    HopClause,
    InfixTest,
    InsertSyntax,
    Item,
    Key,
    ListLiteral,
    LiteralValue,
    Membership,
    Negation,
    NullTest,
    Pair,
    ParamSyntax,
    PropertyAccess,
    QueryFile,
    QuerySyntax,
    ReadBody,
    Selection,
    SettingLine,
    ShowStatement,
    SystemAccess,
    ToolSettings,
    UpdateSyntax,
    Variable,
    Word,
    WriteSyntax,
    operands,
)
from omnigraph.lang.values import float_text

_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")


def is_plain_name(text: str) -> bool:
    """Whether a name can stand bare: a NAME token that is no reserved word."""
    return _NAME.fullmatch(text) is not None and text not in RESERVED


def tree_equal(left: Expression, right: Expression) -> bool:
    """Whether two expressions are equal node by node, literals in type and value."""
    return expression_text(left) == expression_text(right)


def column_name(expression: Expression) -> str:
    """The name of a return item without alias: its canonical text without `$`; a score is named like a property."""
    match expression:
        case Call(name="nearest" | "bm25" as rank, arguments=(PropertyAccess(variable=variable), *_)):
            return f"{variable.text}.{'_distance' if rank == 'nearest' else '_score'}"
        case _:
            pass
    return expression_text(expression, sigil="")


def expression_text(expression: Expression, *, sigil: str = "$") -> str:
    """The canonical text of an expression; `sigil` stands before variables."""
    # Without recursion, since trees are as deep as their brackets: operands first, then what they are part of.
    pending: list[tuple[Expression, bool]] = [(expression, False)]
    done: list[tuple[str, int]] = []
    while pending:
        node, ready = pending.pop()
        parts = operands(node)
        if parts and not ready:
            pending.append((node, True))
            pending.extend((part, False) for part in reversed(parts))
            continue
        printed = done[len(done) - len(parts) :]
        del done[len(done) - len(parts) :]
        done.append(_joined(node, printed, sigil))
    return done[0][0]


def _joined(node: Expression, parts: list[tuple[str, int]], sigil: str) -> tuple[str, int]:
    """The text of a node and how tightly it holds, given those of its operands."""
    match node:
        case Disjunction():
            return " or ".join(_chained(parts, OR, AND)), OR
        case Conjunction():
            return " and ".join(_chained(parts, AND, NOT)), AND
        case Negation(times=times):
            return "not " * times + within(parts[0], NOT), NOT
        case Comparison(sign=sign):
            return f"{within(parts[0], ATOM)} {sign} {within(parts[1], ATOM)}", TEST
        case Membership():
            return f"{within(parts[0], ATOM)} in {within(parts[1], ATOM)}", TEST
        case InfixTest(word=word):
            return f"{within(parts[0], ATOM)} {word} {within(parts[1], ATOM)}", TEST
        case NullTest(negated=negated):
            return f"{within(parts[0], ATOM)} is {'not ' if negated else ''}null", TEST
        case ListLiteral():
            return f"[{', '.join(text for text, _ in parts)}]", ATOM
        case Call(name=name):
            return f"{name}({', '.join(text for text, _ in parts)})", ATOM
        case _:
            return _atom_text(node, sigil), ATOM


def _chained(parts: list[tuple[str, int]], own: int, wanted: int) -> list[str]:
    """Operands of an `and` or `or`. The first can be of the same kind only in a tree that no text parses to."""
    return [within(parts[0], own), *(within(part, wanted) for part in parts[1:])]


def _atom_text(node: Expression, sigil: str) -> str:
    match node:
        case LiteralValue(kind="string", value=str() as value):
            return string_literal(value)
        case LiteralValue(kind="boolean", value=value):
            return "true" if value else "false"
        case LiteralValue(kind="decimal", value=value):
            return float_text(float(value))
        case LiteralValue(value=value):
            return str(value)
        case DateLiteral(kind=kind, text=text):
            return f"{kind}({string_literal(text)})"
        case Variable(name=name):
            return f"{sigil}{name}"
        case PropertyAccess(variable=variable, name=word):
            return f"{sigil}{variable.text}.{word.text}"
        case SystemAccess(variable=variable, name=word):
            return f"{sigil}{variable.text}.@{word.text}"
        case BareName(name=name):
            return name
        case BareSystem(name=name):
            return f"@{name}"
        case _:
            raise AssertionError(f"{type(node).__name__} is no atom")


# --- patterns


def clause_text(clause: Clause) -> str:
    """One clause of a block, on one line."""
    match clause:
        case Declaration(variable=variable, type_name=type_name, pairs=pairs):
            tail = f" {{ {_pairs_text(pairs)} }}" if pairs else ""
            return f"${variable.text}: {type_name.text}{tail}"
        case HopClause():
            return _hop_text(clause)
        case BlockClause(word=word, clauses=clauses):
            return f"{word} {_block_text(clauses)}"
        case FoldClause(fold=fold, argument=argument, clauses=clauses, sign=sign, right=right):
            head = fold if argument is None else f"{fold}({expression_text(argument)})"
            return f"{head} {_block_text(clauses)} {sign} {expression_text(right)}"
        case _:
            return expression_text(clause)


def _block_text(clauses: Sequence[Clause]) -> str:
    return f"{{ {'  '.join(clause_texts(clauses))} }}"


def clause_texts(clauses: Sequence[Clause]) -> list[str]:
    """The clauses of a block. A lone variable gets parentheses where it would read as the left end of a hop."""
    texts = [clause_text(clause) for clause in clauses]
    for index, (clause, following) in enumerate(pairwise(clauses)):
        if isinstance(clause, Variable) and _reads_like_edge(following):
            texts[index] = f"({texts[index]})"
    return texts


def _reads_like_edge(clause: Clause) -> bool:
    """Whether a clause is a string or a bare name and no more, as the edge of a hop is."""
    return isinstance(clause, BareName) or (isinstance(clause, LiteralValue) and clause.kind == "string")


def _hop_text(hop: HopClause) -> str:
    binding = "" if hop.binding is None else f"${hop.binding.text}:"
    bounds = ""
    if hop.bounds is not None:
        bounds = f"{{{hop.bounds.low},{'' if hop.bounds.high is None else hop.bounds.high}}}"
    return f"${hop.left.text} {binding}{_selection_text(hop.selection)}{bounds} ${hop.right.text}"


def _selection_text(selection: Selection) -> str:
    edges = " | ".join(_edge_text(word.text) for word in selection.words) or "*"
    if selection.undirected:
        return f"<{edges}>"
    return f"({edges})" if len(selection.words) > 1 else edges


def _edge_text(word: str) -> str:
    return word if is_plain_name(word) else string_literal(word)


def _pairs_text(pairs: Iterable[Pair]) -> str:
    return ", ".join(f"{pair.name.text}: {expression_text(pair.value)}" for pair in pairs)


# --- queries and files


def query_text(query: QuerySyntax) -> str:
    """A whole query in canonical text, of several lines."""
    params = ", ".join(_param_text(param) for param in query.params)
    abouts = "".join(f" {about}" for about in _abouts(query))
    head = f"query {query.name.text}({params}){abouts} {{\n"
    if isinstance(query.body, ReadBody):
        lines = _read_lines(query.body)
    else:
        lines = [_write_text(statement) for statement in query.body]
    return head + "".join(f"  {line}\n" for line in lines) + "}"


def file_text(file: QueryFile) -> str:
    """A whole file in canonical text."""
    parts = [_setting_text(line) for line in file.settings]
    match file.statement:
        case None:
            pass
        case ShowStatement(name=name):
            parts.append(f"show {name.text};")
        case BranchStatement():
            parts.append(_branch_text(file.statement))
        case ExplainStatement(query=query):
            parts.append(f"explain {query_text(query)}")
        case _:
            assert_never(file.statement)
    parts += [query_text(query) for query in file.queries]
    return "".join(f"{part}\n" for part in parts)


def _param_text(param: ParamSyntax) -> str:
    about = "" if param.description is None else f"@description({string_literal(param.description)}) "
    spelled = {
        "scalar": param.type.word,
        "list": f"[{param.type.word}]",
        "vector": f"Vector({param.type.dimension})",
    }[param.type.form]
    return f"{about}${param.name.text}: {spelled}{'?' if param.type.nullable else ''}"


def _abouts(query: QuerySyntax) -> list[str]:
    abouts: list[str] = []
    if query.description is not None:
        abouts.append(f"@description({string_literal(query.description)})")
    if query.instruction is not None:
        abouts.append(f"@instruction({string_literal(query.instruction)})")
    if query.tool is not None:
        abouts.append(_tool_text(query.tool))
    return abouts


def _tool_text(tool: ToolSettings) -> str:
    arguments: list[str] = []
    if tool.tool_name is not None:
        arguments.append(f"tool_name: {string_literal(tool.tool_name)}")
    if tool.expose is not None:
        arguments.append(f"expose: {'true' if tool.expose else 'false'}")
    return f"@mcp({', '.join(arguments)})"


def _read_lines(body: ReadBody) -> list[str]:
    items = ", ".join(_item_text(item) for item in body.items)
    lines = ["match {", *(f"  {text}" for text in clause_texts(body.clauses)), "}", f"return {{ {items} }}"]
    if body.order:
        lines.append(f"order {{ {', '.join(_key_text(key) for key in body.order)} }}")
    match body.limit:
        case None:
            pass
        case Variable(name=name):
            lines.append(f"limit ${name}")
        case count:
            lines.append(f"limit {count}")
    return lines


def _item_text(item: Item) -> str:
    text = expression_text(item.expression)
    return text if item.alias is None else f"{text} as {item.alias.text}"


def _key_text(key: Key) -> str:
    text = expression_text(key.expression)
    return text if key.direction is None else f"{text} {key.direction}"


def _write_text(statement: WriteSyntax) -> str:
    match statement:
        case InsertSyntax(type_name=name, assignments=pairs):
            return f"insert {name.text} {{ {_pairs_text(pairs)} }}"
        case UpdateSyntax(type_name=name, assignments=pairs, where=where):
            return f"update {name.text} set {{ {_pairs_text(pairs)} }} where {expression_text(where)}"
        case DeleteSyntax(type_name=name, where=where):
            return f"delete {name.text} where {expression_text(where)}"
        case _:
            assert_never(statement)


def _setting_text(line: SettingLine) -> str:
    if line.kind == "reset":
        return f"reset {line.name.text};"
    value = string_literal(line.value) if line.kind == "string" and isinstance(line.value, str) else str(line.value)
    return f"set {line.name.text} = {value};"


def _branch_text(statement: BranchStatement) -> str:
    words = {"create": "from", "merge": "into"}
    text = f"branch {statement.verb}"
    if statement.name is not None:
        text += f" {_branch_name(statement.name)}"
    if statement.other is not None:
        text += f" {words[statement.verb]} {_branch_name(statement.other)}"
    return text


def _branch_name(name: Word) -> str:
    return name.text if _NAME.fullmatch(name.text) else string_literal(name.text)

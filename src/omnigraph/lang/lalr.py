"""A grammar file driven by our own tokens: the one place that knows the parser library.

The grammar (a `.lark` file beside the module that uses it, all terminals by `%declare`) says what may follow what; the
lexer says where tokens begin and end; a `Reader` of the language reads the next token and says which terminal it is.
It can ask which terminals the grammar would take at this point, so a word is a keyword only where the grammar wants
one.

Terminals that begin with `_` leave no trace in the tree. The tree is the library's `Tree` of its `Token`s, whose
`start_pos` and `end_pos` are code-point offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any, cast

import lark
from lark.lexer import Lexer as LarkLexer
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.lexical import Lexer, Token, TokenKind, described

Leaf = lark.Token
Tree = lark.Tree[lark.Token]

# (lexer, offset to read at, whether a terminal may come next) -> (terminal, token)
Reader = Callable[[Lexer, int, Callable[[str], bool]], tuple[str, Token]]

END = "$END"


class Grammar:
    """A loaded grammar. Loading takes some tens of milliseconds: keep one (`functools.cache`) and load it when needed.

    `spellings` names the terminals in messages: {"_LBRACE": "`{`", "NAME": "a name"}. A terminal without an entry is
    never mentioned.
    """

    def __init__(
        self, package: str, file: str, spellings: Mapping[str, str], *, start: str = "start", builder: object = None
    ) -> None:
        """`builder`, if given, has a method per rule that takes the rule's children and makes what stands for it."""
        text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
        options: dict[str, Any] = {"propagate_positions": True} if builder is None else {"transformer": builder}
        self._lark = lark.Lark(text, parser="lalr", lexer=_NoLexer, start=start, **options)
        self._spellings = spellings

    def parse(self, lexer: Lexer, read: Reader) -> Tree:
        """The tree of the whole text. Raises the lexer's syntax error at the first token that does not fit."""
        run = self.run()
        offset = 0
        while True:
            terminal, token = read(lexer, offset, run.takes)
            if token.kind is TokenKind.END:
                terminal = END
            if not run.takes(terminal):
                raise self._refusal(lexer, token, run.wanted())
            result = run.feed(terminal, token)
            if terminal == END:
                return cast("Tree", result)
            offset = token.span.end

    def run(self) -> Run:
        """A parse that the caller drives token by token."""
        return Run(cast("InteractiveParser", cast("Any", self._lark).parse_interactive("")))

    def _refusal(self, lexer: Lexer, token: Token, wanted: set[str]) -> Exception:
        words = [spelling for terminal, spelling in self._spellings.items() if terminal in wanted]
        if END in wanted:
            words.append("the end of the text")
        literal = [word[1:-1] for word in words if word.startswith("`") and word.endswith("`")]
        return lexer.refusal(
            token.span,
            f"unexpected {described(token)}",
            expected=listed(words) if words else None,
            # Only a text that is the one possibility is something to write.
            fix=literal[0] if len(literal) == len(words) == 1 else None,
        )


class Run:
    """One parse, fed token by token.

    `takes` is exact: it follows the reductions that the terminal would cause, where the parse table alone also lists
    what may come next in other contexts. So a word can be given the one role it has, and what was possible is known
    when none is.
    """

    def __init__(self, parser: InteractiveParser) -> None:
        state = cast("Any", parser).parser_state
        self._parser = parser
        self._stack: list[Any] = state.state_stack
        self._states: dict[Any, dict[str, Any]] = state.parse_conf.parse_table.states
        self._end: Any = state.parse_conf.end_state
        self.values: list[Any] = state.value_stack  # what was read and belongs to no larger part yet; read only

    def takes(self, terminal: str) -> bool:
        """Whether this terminal may come next."""
        kept, pushed = len(self._stack), list[Any]()  # the stack is its first `kept` states, then `pushed`
        while True:
            choice = self._states[pushed[-1] if pushed else self._stack[kept - 1]].get(terminal)
            if choice is None:
                return False
            if choice[0] is Shift:
                return True
            rule = choice[1]
            from_pushed = min(len(rule.expansion), len(pushed))
            del pushed[len(pushed) - from_pushed :]
            kept -= len(rule.expansion) - from_pushed
            pushed.append(self._states[pushed[-1] if pushed else self._stack[kept - 1]][rule.origin.name][1])
            if terminal == END and pushed[-1] == self._end:
                return True

    def wanted(self) -> set[str]:
        """All terminals that may come next, `END` included."""
        return {choice for choice in self._states[self._stack[-1]] if choice.isupper() and self.takes(choice)}

    def feed(self, terminal: str, token: Token) -> object:
        """Take the next token, which `takes` allowed. After END: what the builder made of the whole text."""
        span = token.span
        return self._parser.feed_token(lark.Token(terminal, token.text, start_pos=span.start, end_pos=span.end))


class _NoLexer(LarkLexer):
    """Never asked for a token: they are fed one by one."""

    def __init__(self, lexer_conf: Any) -> None:
        del lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[lark.Token]:
        del lexer_state, parser_state
        return iter(())

    __future_interface__ = 2


def span_of(node: Tree | Leaf) -> Span:
    """The place of a tree or token in code points."""
    if isinstance(node, lark.Token):
        return Span(cast("int", node.start_pos), cast("int", node.end_pos))
    return Span(node.meta.start_pos, node.meta.end_pos)


def listed(words: list[str]) -> str:
    """Words as a list in English.

    >>> listed(["a", "b", "c"])
    'a, b or c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

"""Random schema texts: valid ones with odd spacing and comments, and broken ones."""

from hypothesis import strategies as st

_COMMENT = st.sampled_from(["// a\n", "/* b */", "/* node X { */", "/**/", '// "\n', "/* c\n d */"])
_SPACE = st.sampled_from([" ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", " \n "])
_GAP = st.lists(st.one_of(_SPACE, _SPACE, _SPACE, _COMMENT), max_size=3).map(lambda parts: "".join(["", *parts]))
_TYPE_NAME = st.sampled_from(["A", "B", "Lamp", "Node", "Edge_1", "Vector", "String"])
_NAME = st.sampled_from(["a", "b", "node", "edge", "enum", "implements", "true", "trueish", "_x"])
_WORD = st.sampled_from(["a", "close-friend", "3d", "B2B", "-", "7", "true", "1e5"])
_STRING = st.sampled_from(['""', '"a"', '"// x"', '"/*"', r'"\"\\\n\t"', '"two\n  lines"', '"{"'])
_NUMBER = st.sampled_from(["0", "7", "-7", "1.50", "-1e3", "2E+4", "007"])
_ATOMS = [["String"], ["Blob"], ["Bool"], ["I32"], ["U64"], ["F64"], ["Date"], ["DateTime"]]

# A text is a list of tokens first, so that anything may stand between them.
_Tokens = st.SearchStrategy[list[str]]


def _separated(items: _Tokens, least: int = 1, most: int = 3) -> _Tokens:
    many = st.lists(items, min_size=least, max_size=most, unique_by=tuple)
    return many.map(lambda all_: [t for one in all_ for t in (",", *one)][1:])


def _joined(items: _Tokens, most: int) -> _Tokens:
    return st.lists(items, max_size=most).map(lambda all_: [t for one in all_ for t in one])


def _one(token: st.SearchStrategy[str]) -> _Tokens:
    return token.map(lambda text: [text])


def _tokens(*parts: _Tokens | str) -> _Tokens:
    made = [st.just([p]) if isinstance(p, str) else p for p in parts]
    return st.tuples(*made).map(lambda lists: [t for one in lists for t in one])


_ENUM = _tokens("enum", "(", _separated(_one(_WORD)), ")")
_TYPE = _tokens(
    st.one_of(
        st.sampled_from(_ATOMS),
        _tokens("[", st.sampled_from(_ATOMS[2:]), "]"),
        _ENUM,
        st.just(["Vector", "(", "8", ")"]),
    ),
    st.sampled_from([[], ["?"]]),
)
_LITERAL = _one(st.one_of(_STRING, _NUMBER, _WORD))
_OPTION = _tokens(_one(st.sampled_from(["k", "model", "kind"])), "=", _LITERAL)
_ARGUMENTS = _tokens("(", _LITERAL, st.one_of(st.just([]), _tokens(",", _OPTION)), ")")
_ANNOTATION = _tokens(
    _one(st.sampled_from(["@x", "@description", "@embed", "@default", "@allow"])), st.one_of(st.just([]), _ARGUMENTS)
)
_PROPERTY = _tokens(_one(_NAME), ":", _TYPE, _joined(_ANNOTATION, 2))
_BOUNDS = st.one_of(
    _tokens(_one(_NUMBER), "..", _one(_NUMBER)), _tokens(_one(_NUMBER), ".."), _tokens("..", _one(_NUMBER))
)
_CONSTRAINT = st.one_of(
    _tokens(_one(st.sampled_from(["@key", "@unique", "@index"])), "(", _separated(_one(_NAME)), ")"),
    _tokens("@index", "(", _one(_NAME), ",", _OPTION, ")"),
    _tokens("@range", "(", _one(_NAME), ",", _BOUNDS, ")"),
    _tokens("@check", "(", _one(_NAME), ",", _one(_STRING), ")"),
)
_BODY = _tokens("{", _joined(st.one_of(_PROPERTY, _CONSTRAINT), 4), "}")
_IMPLEMENTS: _Tokens = st.one_of(st.just([]), _tokens("implements", _separated(_one(_TYPE_NAME))))
_CARD = st.sampled_from([[], ["@card", "(", "0", "..", ")"], ["@card", "(", "1", "..", "2", ")"]])
_DECLARATION = st.one_of(
    _tokens("interface", _one(_TYPE_NAME), "{", _joined(_PROPERTY, 3), "}"),
    _tokens("node", _one(_TYPE_NAME), _joined(_ANNOTATION, 2), _IMPLEMENTS, _BODY),
    _tokens(
        "edge",
        _one(_TYPE_NAME),
        ":",
        _one(_TYPE_NAME),
        "->",
        _one(_TYPE_NAME),
        _CARD,
        _joined(_ANNOTATION, 2),
        st.one_of(st.just([]), _BODY),
    ),
)


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """A text that parses, though its names may mean nothing."""
    tokens = draw(_joined(_DECLARATION, 4))
    text = draw(_GAP)
    for token in tokens:
        gap = draw(_GAP)
        glued = text[-1:].isalnum() or text[-1:] in "_-.0123456789"
        text += (gap or (" " if glued else "")) + token
    return text + draw(_GAP)


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """A text that nearly parses: pieces taken out, doubled or replaced."""
    text = draw(schemas())
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 6))
        put = draw(st.sampled_from(["", "{", "}", '"', "(", "@", "/*", ",", "é", "node X {", "\\"]))
        text = text[:at] + put + text[at + length :]
    return text

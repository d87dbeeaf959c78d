"""JSON values for Hypothesis, and texts of them with comments and trailing commas."""

from __future__ import annotations

import json
import re

from hypothesis import strategies as st

KEYS = st.text(max_size=6) | st.sampled_from(["mcpServers", "quaid", "a", "b"])
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    LEAVES, lambda some: st.lists(some, max_size=3) | st.dictionaries(KEYS, some, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
SPACES = st.sampled_from(["", " ", "\n", "\r\n", "\t", "\n\n  ", " // it's {\n", "/* , } */", " /* two\n lines */ "])


@st.composite
def json_texts(draw, values=OBJECTS):
    """The same value written in a hundred ways."""

    def gap():
        return "".join(draw(st.lists(SPACES, max_size=2)))

    def string(text):
        return json.dumps(text, ensure_ascii=draw(st.booleans()))

    def write(value):
        if isinstance(value, dict):
            return wrap("{}", [f"{string(key)}{gap()}:{gap()}{write(item)}" for key, item in value.items()])
        if isinstance(value, list):
            return wrap("[]", [write(item) for item in value])
        return string(value) if isinstance(value, str) else json.dumps(value)

    def wrap(marks, parts):
        body = ",".join(f"{gap()}{part}{gap()}" for part in parts)
        return f"{marks[0]}{body}{',' if parts and draw(st.booleans()) else ''}{gap()}{marks[1]}"

    value = draw(values)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return f"{mark}{gap()}{write(value)}{gap()}", value


def comments_of(text):
    return [found[1] for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"|(//[^\n\r]*|/\*(?s:.*?)\*/)', text) if found[1]]

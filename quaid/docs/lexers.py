"""Source code -> its tokens or lines without comments, and nothing where it is doubtful what is a comment."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath

# A literal or comment without an end does not match, is doubtful and ends the reading: no text is scanned twice.
_DOUBLE = r'"(?:[^"\\\n]|\\.)*+"'
_SINGLE = r"'(?:[^'\\\n]|\\.)*+'"
_CHARACTER = r"'(?:\\[^\n']++|\\'|[^\\'\n])'"
_TRIPLE = r'"""(?:[^"\\]|\\.|"(?!""))*+"""(?!")'
_IN_HOLE = rf"{_DOUBLE}|{_SINGLE}|`[^`$\\]*+`|[^{{}}\"'`\n/]|/(?![/*])"
_HOLE = rf"\{{(?:{_IN_HOLE}|\{{(?:{_IN_HOLE})*+\}})*+\}}"
_DOLLAR_HOLES = rf'"(?:[^"\\\n$]|\\.|\$(?!\{{)|\${_HOLE})*+"(?!")'
_NO_HOLES = r'"(?:[^"\\\n$]|\\.|\$(?!\{))*+"(?!")'
_BLOCK = r"/\*(?:[^*]|\*(?!/))*+\*/"
_FLAT = r"/\*(?:[^*/]|\*(?!/)|/(?!\*))*+\*/"
_NESTING = rf"/\*(?:[^*/]|\*(?!/)|/(?!\*)|{_FLAT})*+\*/"
_SLASHES = r"(?<![:\\])//"  # after a colon it is an address, after a backslash a part of a regular expression
_TO_END = r"[^\n]*+(?<!\\)"  # a backslash may take the next line along
_SLASHED = rf"/(?=[^\n]{{0,200}}[\"'`\\\[$])|{_SLASHES}"
_DIRECTIVE = rf"^[ \t]*+#(?:{_DOUBLE}|\\.|[^\n\"\\/]|/(?![/*]))*+(?=$|//|/\*[^\n]*+(?<=\*/)$)"

_FOR_TOOLS = re.compile(
    r"\{[{%]|@(?:[A-Z]|jsx|dart\b)|webpack[A-Z]|coding[:=]|_string_literal|shareable_constant"
    r"|^(?://|/\*|--|#)[ \t]*\+\w|^/\*(?:\+|!\d)|^##(?!#)|^<!--\s*+(?:[\[#]|/?(?:ko|wp|build)\b)"
    r"|^//(?:go:|export\b|(?:DEPS|REPOS|SOURCES|FILES|JAVA)\b|[ \t]*swift-tools-version|[ \t]*@(?!ts-)|/[ \t]*<[ra])"
    r"|^--(?:\+|[ \t]*:?name\b|[ \t]*\w+:)|^#(?:!|SBATCH|PBS|BSUB|\$ |[ \t]*(?:syntax|escape|check)[ \t]*=)"
)
"""Comments that are code to a tool."""
_ALL_FOR_TOOLS = re.compile(
    r"^# /// |^// ==UserScript|^#cloud-config|@(?:openapi|swagger)\b|(?:Plugin|Theme) Name:"
    r'|^--[ \t]*(?:liquibase|changeset)|\bimport[ \t]+"C"',
    re.MULTILINE,
)
"""If one of these occurs, comments of several lines are code to a tool."""
_BLANKS = re.compile(rf"({_DOUBLE})|(?:\\\n|[^\S\n])++")


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A language whose white space says nothing outside of literals, but for ends of lines if `has_lines`.

    The texts are regular expressions (MULTILINE and DOTALL), `doubt` one for where no reader goes on. A comma between
    an item and a bracket of `loose_commas` on a later line says nothing.
    """

    comments: str = rf"{_SLASHES}{_TO_END}|{_BLOCK}"
    literals: str = f"{_DOUBLE}|{_SINGLE}"
    doubt: str = _SLASHES
    has_lines: bool = False
    loose_commas: str = ")]}"


@dataclass(frozen=True, slots=True)
class _Lines:
    """A language that is compared by its lines, without those that are a comment (an expression, from their start).

    Where `doubt` occurs in a line, literals of one line left out, comments count.
    """

    comment: str
    doubt: str = r"(?!)"


_C = _Tokens(
    literals=rf'\bu?8?R"(?P<raw>[^\s()\\"]{{0,16}})\(.*?\)(?P=raw)"|{_DOUBLE}|{_CHARACTER}|\d(?:\'?\w)*+|(?P<directive>{_DIRECTIVE})',
    doubt=rf"R\"|{_SLASHES}|^[ \t]*+#",
    loose_commas="}",
)
_SCRIPT = _Tokens(
    comments=rf"{_SLASHES}(?:(?!</)[^\n])*+(?=\n|\Z)(?<!\\)|{_BLOCK}",
    literals=rf"{_DOUBLE}|{_SINGLE}|`(?:[^`\\$]|\\.|\$(?!\{{)|\${_HOLE})*+`"
    r"|(?:=>|[=(,:;\[!&|?{}])\s*+/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*+\])++/",
    # Tags have text between them; a slash may open a regular expression after a word or a bracket.
    doubt=rf"</|/>|{_SLASHED}",
    has_lines=True,
)
_KOTLIN = _Tokens(
    comments=rf"{_SLASHES}{_TO_END}|{_NESTING}",
    literals=rf'"""(?:[^"$]|"(?!"")|\$(?!\{{)|\${_HOLE})*+"""(?!")|{_DOLLAR_HOLES}|{_CHARACTER}',
    has_lines=True,
)
_BY_SUFFIX: dict[str, _Tokens | _Lines] = {
    "c h cc cpp cxx c++ hh hpp hxx inl ino cu glsl": _C,
    "cs": replace(
        _C,
        comments=rf"{_SLASHES}{_TO_END}|{_BLOCK}|^[ \t]*+#[ \t]*+(?:end)?region\b[^\n]*+",
        literals=rf'\$"(?!"")(?:[^"\\\n{{]|\\.|\{{\{{|{_HOLE})*+"|@"(?:[^"]|"")*+"|{_DOUBLE}(?!")|{_CHARACTER}'
        rf"|(?P<directive>{_DIRECTIVE})",
        doubt=rf"[$@]++\"|{_SLASHES}|^[ \t]*+#",
        loose_commas="]}",
    ),
    "java": _Tokens(literals=rf"{_TRIPLE}|{_DOUBLE}(?!\")|{_CHARACTER}", loose_commas="}"),
    "json jsonc json5 proto thrift sol": _Tokens(loose_commas="]}"),
    "dart": _Tokens(
        literals=rf"{_NO_HOLES}|'(?:[^'\\\n$]|\\.|\$(?!\{{))*+'(?!')",
        doubt=rf"\br[\"']|{_SLASHES}",
    ),
    "rs": _Tokens(
        comments=rf"{_SLASHES}{_TO_END}|{_NESTING}",
        literals=rf'\b[bc]?r(?P<raw>#*+)".*?"(?P=raw)|b?"(?:[^"\\]|\\.)*+"|{_CHARACTER}|\'\w++',
        doubt=rf"\b[bc]?r#*+\"|{_SLASHES}",
        loose_commas="]}",
    ),
    "php": _Tokens(
        comments=rf"(?!\A)(?:{_SLASHES}|#(?!\[))(?:(?!\?>)[^\n])*+(?<!\\)|{_BLOCK}",
        literals=r"""\A<\?php\b|"(?:[^"\\{$]|\\.|\{(?!\$)|\$(?!\{)|\{\$[^"{}]*+\})*+"|'(?:[^'\\]|\\.)*+'""",
        doubt=rf"\A|\?>|<<<|#(?!\[)|{_SLASHES}",
    ),
    "sql ddl": _Tokens(
        comments=rf"--(?=\s)[^\n]*+|{_BLOCK}",
        literals=r"'[^'\\]*+'|\"[^\"]*+\"|`[^`]*+`|\$(?P<raw>\w*+)\$.*?\$(?P=raw)\$",
        doubt=r"\b[nN]?[qQ]'|\$",
        loose_commas="",
    ),
    "go": _Tokens(literals=rf"{_DOUBLE}|`[^`]*+`|{_CHARACTER}", has_lines=True),
    "js mjs cjs jsx ts mts cts tsx": _SCRIPT,
    "kt kts": _KOTLIN,
    "swift": replace(_KOTLIN, literals=r'"(?:[^"\\\n]|\\[^(\n])*+"(?!")', doubt=rf"#\"|{_SLASHES}"),
    "groovy gradle jenkinsfile": _Tokens(literals=rf"{_SINGLE}(?!')|{_DOLLAR_HOLES}", doubt=_SLASHED, has_lines=True),
    "py pyi pyw toml graphql gql gitignore gitattributes dockerignore editorconfig env conf properties": _Lines("#"),
    "ini cfg": _Lines("[#;]"),
    "sh bash zsh ksh bats dockerfile containerfile": _Lines("#", "<<"),
    "tf tfvars hcl": _Lines("#|//", "<<"),
    "rb rake gemspec gemfile rakefile": _Lines("#", r"<<|%|^=begin|^__END__"),
    "ex exs": _Lines("#", "~[a-zA-Z]"),
    "r": _Lines("#"),
    "mk make makefile gnumakefile": _Lines("(?<!\t)#", r"\bdefine\b"),
    "cmake": _Lines("#", r"\[=*\["),
    "lua": _Lines("--", r"\[=*\["),
    "hs": _Lines(r"--+(?![!#$%&*+./<=>?@\\^|~:-])", r"\{-"),
    "scala sc mod": _Lines("//"),
    "css": _Lines(rf"{_BLOCK}$"),
    "scss less": _Lines(rf"//|{_BLOCK}$"),
    "html htm xml svg vue svelte xhtml": _Lines(r"<!--(?:[^-]|-(?!->))*+-->$", "<textarea"),
}
_LANGUAGES = {suffix: language for suffixes, language in _BY_SUFFIX.items() for suffix in suffixes.split()}
_BY_NAME = {"cmakelists.txt": "cmake", "requirements.txt": "conf"}
_ONE_LINE = re.compile(r"""\\.|"(?:[^"\\]|\\.)*+"|'[^']*+'|`[^`]*+`""")
_GOES_ON_AFTER = frozenset("([{,;=+-*/%&|<:.")
_GOES_ON_WITH = frozenset(".?:|&)]},")


def lines_of(text: str) -> list[str]:
    """The lines without blanks at their ends, and without empty ones, but for what a backslash in front of it meets."""
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.rstrip()
        if stripped or (lines and lines[-1].endswith("\\")):
            lines.append(f"{stripped} " if stripped.endswith("\\") and stripped != line else stripped)
    return lines


def hash_comments_for_tools(text: str) -> list[str]:
    """The lines with a `#` and a comment for a tool behind it; some may be text and not comments."""
    all_count = _ALL_FOR_TOOLS.search(text)
    return [
        line
        for line in text.split("\n")
        if (place := line.find("#")) >= 0 and (all_count or _FOR_TOOLS.search(line[place:]))
    ]


def read_code(path: str, text: str) -> list[str] | None:
    """Return the tokens or lines of `text` without its comments; None in doubt, and for an unknown language."""
    name = PurePosixPath(path).name.lower()
    suffix = "dockerfile" if name.startswith("dockerfile.") else name.rpartition(".")[2]
    language = _LANGUAGES.get(_BY_NAME.get(name, suffix))
    if language is None or _ALL_FOR_TOOLS.search(text):
        return None
    return _read_lines(text, language) if isinstance(language, _Lines) else _read_tokens(text, language)


def _read_lines(text: str, language: _Lines) -> list[str] | None:
    comment = re.compile(rf"[ \t]*+(?:{language.comment})")
    doubt = re.compile(rf"[\"'`]|{language.doubt}")
    read: list[str] = []
    for line in lines_of(text):
        is_comment = comment.match(line) and not (read and read[-1].rstrip().endswith("\\"))
        if is_comment and not _FOR_TOOLS.search(line.strip()):
            continue
        if not is_comment and doubt.search(_ONE_LINE.sub("", line)):
            return None
        read.append(line)
    return read


def _read_tokens(text: str, language: _Tokens) -> list[str] | None:
    tokens: list[str] = []
    is_line_new = False
    for match in _pattern(language).finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "doubt":
            return None
        if kind == "space" or (kind == "comment" and not _FOR_TOOLS.search(token)):
            is_line_new |= "\n" in token
            continue
        if "directive" in match.re.groupindex and match["directive"]:
            token = _BLANKS.sub(lambda found: found[1] or " ", token).strip()
        last = tokens[-1] if tokens else ""
        if is_line_new and last == "," and token in language.loose_commas:
            tokens.pop()
        elif is_line_new and language.has_lines and not _goes_on(last, token):
            tokens.append("\n")
        is_line_new = False
        tokens.append(token)
    return tokens


@cache
def _pattern(language: _Tokens) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<comment>{language.comments})|(?P<literal>{language.literals})|(?P<doubt>{language.doubt}|[\"'`]|/\*)"
        r"|(?P<space>\n|[^\S\n]++)|\w++|[-+*%=<>!&|^?:.@~]++|.",
        re.MULTILINE | re.DOTALL,
    )


def _goes_on(last: str, token: str) -> bool:
    is_open = not last or (last[-1] in _GOES_ON_AFTER and last not in {"++", "--"})
    return is_open or token[0] in _GOES_ON_WITH

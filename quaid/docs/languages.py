"""How the languages of source files are written: where comments and literals begin, and which white space counts.

A row says only what a comparison needs. Where a language is hard to read without its grammar, its row errs to one side:
something is taken for code that is a comment, never the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

# Every literal ends where its text does when nobody has closed it: no expression is tried twice from the same place.
_DOUBLE = r'"(?:[^"\\\n]|\\.)*+"?'
_SINGLE = r"'(?:[^'\\\n]|\\.)*+'?"
_DOUBLE_LINES = r'"(?:[^"\\]|\\.)*+"?'
_SINGLE_LINES = r"'(?:[^'\\]|\\.)*+'?"
_THREE_DOUBLE = r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?'
_THREE_SINGLE = r"'''(?:[^'\\]|\\.|'(?!''))*+(?:''')?"
_THREE_RAW = r'"""(?:[^"]|"(?!""))*+(?:""")?'
_UNESCAPED_LINES = r"'[^']*+'?"
_DOUBLED_LINES = r"'(?:[^']|'')*+'?"  # a quote in it is written twice
_AFTER_PREFIX = r"'(?:\\[^\n']+|\\'|[^\\'\n])'"
_CHARACTER = rf"(?<!\w){_AFTER_PREFIX}"
_REST = r"[^\n]*+"
_AT_START = r"^[ \t]*+"
_AFTER_SPACE = r"(?<!\S)"
# Blanks in the midst of a text are a part of it; those around signs only align it.
_GAP = r"(?<=[^\s:=,\[{(-])[ \t]{2,}+(?=[^\s:=#;&|\\\]})])"
# An empty line before one of YAML that is no key and no item: it breaks a line of the text around it.
_PARAGRAPH = r"(?<=[^\s:,|>\[{])\n(?:[ \t]*+\n)+(?=[ ]++[^\s#-](?:(?!:[ \t\n])[^\n])*+$)"
_JOINED = r"(?<!\s)\\\n"  # what stands on both sides of such an end of a line may be one word
_EXPANSION = r"\$\{(?:[^{}\n\"'`\\]|\\.)*+\}"  # a `#` in it is an operator or a part of a pattern
# An f-string of Python 3.12 with a quote of its own kind in a hole: nothing here sees where it ends.
_NOT_QUOTE = r"(?:(?!(?P=quote))[^{}\n])*+"
_NESTED_QUOTES = (
    rf"\b(?:[fF][rR]?|[rR][fF])(?P<quote>[\"'])(?!(?P=quote))(?:(?!(?P=quote))[^{{}}\\\n]|\\.|\{{\{{|\}}\}}"
    rf"|\{{{_NOT_QUOTE}(?:\{{{_NOT_QUOTE}\}}{_NOT_QUOTE})*+\}})*+\{{(?:(?!(?P=quote))[^\n])*+(?P=quote)"
)


@dataclass(frozen=True, slots=True)
class Hole:
    """Literals that hold code: what opens them, what opens a hole in them (both expressions), and the closing quote."""

    opens: str
    quote: str
    hole: str
    is_raw: bool = False
    is_one_line: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """`line`, `kept`, `literals`, `long` and `doubt` are regular expressions (MULTILINE and DOTALL); "" for none.

    `line`: a comment that ends with its line. `block`: the ends of a comment, as text. `kept`: comments that are code.
    `literals`: whole ones. `long`: openings of literals whose end depends on their beginning. `doubt`: where it occurs,
    the text is compared as it stands, line by line.
    `has_tags`: there are elements, and text between their tags in which blanks count.
    `has_expressions`: `/` may open a regular expression. `has_directives`: `#` begins a line that is one for itself.
    `goes_on`: the signs that go on with the line before when a line begins with them, as if it had not ended.
    `breaks`: what the end of a line is: `free` (a blank), `ends` (the end of a statement, as `;` is), `layout` (counts,
    with the indentation after it).
    `has_blanks`: whether blanks count, but for those around the characters of `glue`.
    `loose_commas`: brackets in which a comma after the last item says nothing.
    `quotes`: whether single and double ones say the same: never, where nothing is escaped between them, always.
    `imports`: the words that imports begin with.
    """

    line: str = rf"(?<!:)//{_REST}"  # after a colon it is an address
    block: tuple[str, str] | None = ("/*", "*/")
    nests: bool = False
    kept: str = ""
    literals: str = f"{_DOUBLE}|{_SINGLE}"
    holes: tuple[Hole, ...] = ()
    long: str = ""
    doubt: str = ""
    has_expressions: bool = False
    has_heredocs: bool = False
    has_directives: bool = False
    has_tags: bool = False
    breaks: Literal["free", "ends", "layout"] = "free"
    goes_on: str = ""
    has_blanks: bool = False
    glue: str = ""
    loose_commas: str = "([{"
    has_loose_semicolons: bool = False
    quotes: Literal["differ", "plain", "alike"] = "differ"
    imports: frozenset[str] = frozenset()


_C = Language(
    line=r"(?<!:)//(?:[^\\\n]|\\.)*+",  # one that ends with a backslash takes the next line along
    literals=rf"{_DOUBLE}|(?<!\w)(?:u8|[uUL])?'(?:[^\\'\n]|\\.)++'",
    long=r'\b(?:u8|[uUL])?R"(?P<raw>[^\s()\\"]{0,16})\(',
    has_directives=True,
    loose_commas="{",
)
_SCRIPT = Language(
    # After a backslash it is the end of an expression, before the end of a tag the text of a page.
    line=rf"(?<![:\\])//(?![^\n]{{0,200}}</){_REST}",
    kept=r"///[ \t]*<|/\*[*\s]*(?:@jsx|@swagger|@openapi|webpack[A-Z])",
    doubt="^// ==UserScript==",
    holes=(Hole("`", "`", r"\$\{"),),
    has_expressions=True,
    breaks="ends",
    goes_on="([`/+-",
    quotes="alike",
    imports=frozenset({"import"}),
)
# Text between tags looks like code: an address in it is no comment, nor are words after a slash.
_MARKUP_SCRIPT = replace(
    _SCRIPT,
    has_tags=True,
    line=rf"(?:(?<!>\n)^|(?<=[;,{{}}()\[\]]))[ \t]*+//(?![^\n]{{0,200}}</){_REST}(?!\s*+<)",
)
_KOTLIN = Language(
    nests=True,
    literals=_CHARACTER,
    holes=(Hole('"""', '"""', r"\$\{", is_raw=True), Hole('"', '"', r"\$\{", is_one_line=True)),
    breaks="ends",
    imports=frozenset({"import"}),
)
_SHELL = Language(
    line=rf"(?<![^\s;&|])(?<!\\[ \t])(?<!\S\\\n)#{_REST}",
    kept=r"#(?:!|SBATCH|PBS|BSUB|\$ )",
    block=None,
    literals=rf"\\[^\n]|{_JOINED}(?![ \t])|\$'(?:[^'\\]|\\.)*+'?|{_UNESCAPED_LINES}|{_EXPANSION}",
    holes=(Hole('"', '"', rf"\$\(|(?!{_EXPANSION})\$\{{"),),
    has_heredocs=True,
    breaks="ends",
    has_blanks=True,
    loose_commas="",
)
_HASH = Language(line=f"#{_REST}", block=None, literals=_DOUBLE, breaks="layout", has_blanks=True, loose_commas="")
_SETTINGS = Language(
    line=rf"(?<!\\\n){_AT_START}[#;]{_REST}",
    block=None,
    literals=rf"{_DOUBLE_LINES}|{_SINGLE}|{_GAP}|{_JOINED}",
    breaks="layout",
    has_blanks=True,
    loose_commas="",
)
_CSS = Language(
    line="",
    kept=r"/\*.*?(?:Plugin|Theme) Name:",
    literals=rf"url\([^)\"'\n]*+\)?|{_DOUBLE}|{_SINGLE}",
    has_blanks=True,
    glue="{};,",
    loose_commas="",
    has_loose_semicolons=True,
    quotes="plain",
)

PYTHON = Language(
    line=rf"^# /// [\w-]++$(?:\n#{_REST})*+|#{_REST}",
    block=None,
    kept=r"# ///|#[^\n]*?coding[:=][ \t]*+(?!(?i:utf-?8)\b)",
    literals="|".join(
        rf"(?:\b[rRbBuUfF]{{1,2}})?{quotes}" for quotes in (_THREE_DOUBLE, _THREE_SINGLE, _DOUBLE, _SINGLE)
    ),
    doubt=_NESTED_QUOTES,
    breaks="layout",
    loose_commas="{",
    has_blanks=False,
)
YAML = replace(
    _HASH,
    line=rf"{_AFTER_SPACE}#{_REST}",
    kept=r"#cloud-config|#[^\n]*?\{[{%]",  # what makes YAML of templates looks into comments, too
    literals=rf"(?<![^\s\[{{,(:!])(?:{_DOUBLE_LINES}|{_DOUBLED_LINES})|{_GAP}|{_PARAGRAPH}",
    long=r"(?<=[\s])[|>][-+0-9]{0,2}(?=[ \t]*+(?:#[^\n]*+)?$)",
    quotes="plain",
)
PLAIN = Language(line="", block=None, literals="", breaks="layout", has_blanks=True, loose_commas="")
"""Of an unknown language: only blank lines and the ends of lines say nothing."""

_BY_SUFFIX: dict[str, Language] = {
    "py pyi pyw": PYTHON,
    "js mjs cjs ts mts cts": _SCRIPT,
    "jsx tsx": _MARKUP_SCRIPT,
    "jsonc json5 json": replace(_SCRIPT, holes=(), has_expressions=False, breaks="free", imports=frozenset()),
    "go": Language(
        kept=r"//go:|//[ \t]*[+@]\w|//export\b",
        literals=rf"{_DOUBLE}|`[^`]*+`?|{_CHARACTER}",
        doubt=r'\bimport[ \t]+"C"',
        breaks="ends",
        imports=frozenset({"import"}),
    ),
    "rs": Language(
        nests=True,
        literals=rf"b?{_DOUBLE_LINES}|(?<!\w)b?{_AFTER_PREFIX}",
        long=r'\b(?:b|c)?r(?P<hashes>#{0,64})"',
        imports=frozenset({"use"}),
    ),
    "java": Language(
        kept=r"//(?:DEPS|REPOS|SOURCES|FILES|JAVA)\b",
        literals=rf"{_THREE_DOUBLE}|{_DOUBLE}|{_CHARACTER}",
        loose_commas="{",
        imports=frozenset({"import"}),
    ),
    "c h cc cpp cxx c++ hh hpp hxx inl mm ino cu glsl": _C,
    # Of the languages whose files end so, only one has these words.
    "m": replace(_C, doubt=r"\A(?!.*?^[ \t]*+[#@](?:import|include|interface|implementation|protocol|class|end)\b)"),
    "cs": Language(
        line=rf"(?<!:)//{_REST}|{_AT_START}#[ \t]*+(?:end)?region\b{_REST}",
        literals=rf'(?<!\$)\$*+{_THREE_RAW}|@"[^"]*+"?|{_DOUBLE}|{_CHARACTER}',
        holes=(
            Hole(r'(?:\$@|@\$)"', '"', r"(?<!\{)\{(?!\{)", is_raw=True),
            Hole(r'\$"(?!"")', '"', r"(?<!\{)\{(?!\{)", is_one_line=True),
        ),
        has_directives=True,
        loose_commas="{[",
        imports=frozenset({"using"}),
    ),
    "kt kts": _KOTLIN,
    "scala sc": replace(_KOTLIN, literals=rf"{_CHARACTER}", breaks="layout"),
    "swift": replace(
        _KOTLIN,
        kept=r"//[ \t]*swift-tools-version",
        literals="",
        holes=(Hole('"""', '"""', r"\\\("), Hole('"', '"', r"\\\(", is_one_line=True)),
        doubt='#"',
    ),
    "groovy gradle": replace(
        _KOTLIN, nests=False, literals=f"{_THREE_SINGLE}|{_SINGLE}", doubt=r"\$/", has_expressions=True
    ),
    "dart": replace(
        _KOTLIN,
        kept=r"//[ \t]*@dart\b",
        literals="",
        holes=tuple(Hole(quote, quote, r"\$\{", is_one_line=len(quote) == 1) for quote in ('"""', "'''", '"', "'")),
        doubt=r"""\br["']""",
        breaks="free",
    ),
    "php phtml": Language(
        line=r"(?:(?<!:)//|#(?!\[))(?:[^\n?]|\?(?!>))*+",
        kept=r"/\*.*?(?:@[A-Z]\w*[\\(]|(?:Plugin|Theme) Name:)",
        literals=_SINGLE_LINES,
        holes=(Hole('"', '"', r"\{(?=\$)|\$\{"), Hole("`", "`", r"\{(?=\$)|\$\{")),
        long=r"\A|\?>",
        has_heredocs=True,
        imports=frozenset({"use"}),
    ),
    "rb rake gemspec": Language(
        line=rf"{_AFTER_SPACE}#{_REST}|^=begin\b(?:(?!^=end\b).)*+(?:^=end{_REST})?",
        block=None,
        kept=r"#[ \t]*(?:-\*-[ \t]*)?(?:frozen_string_literal|shareable_constant_value|(?:en)?coding)",
        literals=rf"^__END__$.*+|\?#|(?:(?<=[=(,\[])|(?<=[=(,\[] ))\?[\"'`]|{_SINGLE_LINES}",
        holes=(Hole('"', '"', r"#\{"), Hole("`", "`", r"#\{")),
        long=r"(?<![\w)\]}])%(?:[qQwWiIrxs]|(?=[^~@^]\S))(?P<bracket>[\[({<|!/~@^])",
        has_expressions=True,
        has_heredocs=True,
        breaks="ends",
        has_blanks=True,
        glue=",;{}=",
        loose_commas="([{",
        quotes="plain",
    ),
    "ex exs": Language(
        line=f"#{_REST}",
        block=None,
        literals=rf"\?[\"'#]|{_THREE_SINGLE}|{_SINGLE}",
        holes=(Hole('"""', '"""', r"#\{"), Hole('"', '"', r"#\{")),
        long=r"~[a-zA-Z]+(?P<bracket>[\[({<|/])",
        doubt=r"~[a-zA-Z]+[\"']",
        breaks="ends",
        has_blanks=True,
        glue=",;",
        loose_commas="",
    ),
    "sh bash zsh ksh bats": _SHELL,
    "lua": Language(
        line=rf"--(?!\[=*\[){_REST}", block=None, long=r"(?P<remark>--)?\[(?P<level>=*)\[", loose_commas="{"
    ),
    "sql ddl": Language(
        line=rf"(?:--(?=\s)|(?<![\w)])--){_REST}",
        kept=r"--[ \t]*(?:\+|:?name:?|migrate:|liquibase|changeset|rollback|precondition)|/\*[!+]|(?:--|/\*).*?\{[{%]",
        literals=r"'[^']*+'?|\"[^\"]*+\"?|`[^`]*+`?",
        long=r"\$(?P<tag>\w*)\$",
        doubt=r"\\'|\b[nN]?[qQ]'\W",
        loose_commas="",
    ),
    "css": _CSS,
    "scss less": replace(_CSS, line=rf"(?<!:)//{_REST}"),
    "html htm xml svg vue svelte xhtml xsl xsd": Language(
        line="",
        block=("<!--", "-->"),
        literals=rf"{_DOUBLE}|{_SINGLE}|`[^`]*+`?",
        has_blanks=True,
        loose_commas="",
        doubt=r"<!\[|<!--\s*+(?:[\[#]|/?(?:ko|wp|build)\b)|<(?:pre|textarea|xsl:text)\b|\bxml:space"
        r"|\b(?:lang|type)=[\"']?(?:pug|jade|haml|slim|sass|styl|ya?ml|coffee|m?py\b|text/(?:x-)?(?:python|yaml|markdown))"
        r"|white-space\s*+:\s*+(?:pre|break)",
        has_tags=True,
    ),
    "proto thrift sol": Language(loose_commas="{[", imports=frozenset({"import"})),
    "graphql gql": Language(line=f"#{_REST}", block=None, literals=rf"{_THREE_DOUBLE}|{_DOUBLE}"),
    "tf tfvars hcl": Language(
        line=rf"(?:#|(?<!:)//){_REST}",
        literals="",
        holes=(Hole('"', '"', r"[$%]\{"),),
        has_heredocs=True,
        breaks="ends",
    ),
    "hs": replace(
        _HASH,
        line=rf"(?<![!#$%&*+./<=>?@\\^|~:-])--+(?![!#$%&*+./<=>?@\\^|~:-]){_REST}",
        block=("{-", "-}"),
        nests=True,
        kept=r"\{-#",
        literals=rf"{_DOUBLE_LINES}|{_CHARACTER}",
    ),
    "yml yaml": YAML,
    "mk make": replace(
        _HASH,
        line=rf"{_AFTER_SPACE}#{_REST}",
        kept=r"##(?!#)",  # what `make help` prints
        literals=rf"\\#|{_DOUBLE}|{_SINGLE}",
        doubt=r"^define\b(?:(?!^(?:define|endef)\b)[^#])*+#",
    ),
    "r": Language(
        line=f"#{_REST}",
        block=None,
        literals=f"{_DOUBLE_LINES}|{_SINGLE_LINES}",
        doubt=r"\b[rR][\"']",
        breaks="ends",
        loose_commas="",
    ),
    "cmake": Language(
        line=rf"#(?!\[=*\[){_REST}",
        block=None,
        literals=_DOUBLE_LINES,
        long=r"(?P<remark>#)?\[(?P<level>=*)\[",
        has_blanks=True,
        glue="()",
        loose_commas="",
    ),
    "toml": replace(_HASH, literals=rf"{_THREE_DOUBLE}|'''(?:[^']|'(?!''))*+(?:''')?|{_DOUBLE}|'[^'\n]*+'?"),
    "ini cfg conf properties env editorconfig gitignore gitattributes dockerignore": _SETTINGS,
    "dockerfile containerfile": replace(
        _SETTINGS, line=rf"{_AT_START}#{_REST}", kept=r"#[ \t]*(?:syntax|escape|check)[ \t]*=", has_heredocs=True
    ),
}
_BY_NAME = {
    "makefile": "mk",
    "gnumakefile": "mk",
    "cmakelists.txt": "cmake",
    "requirements.txt": "ini",
    "gemfile": "rb",
    "rakefile": "rb",
    "jenkinsfile": "groovy",
    "go.mod": "proto",
}
_LANGUAGES = {suffix: language for suffixes, language in _BY_SUFFIX.items() for suffix in suffixes.split()}


def language_of(path: str) -> Language:
    """The language that the name of a file stands for; PLAIN when unknown."""
    name = PurePosixPath(path).name.lower()
    suffix = "dockerfile" if name.startswith("dockerfile.") else name.rpartition(".")[2]
    return _LANGUAGES.get(_BY_NAME.get(name, suffix), PLAIN)

"""The markdown of a note as safe HTML: every note may be hostile.

There are two barriers. The renderer escapes raw HTML, makes images only of the vault's files and links only to the
memory or, without a referrer, to the web. Its output is then sanitised by an independent library.
"""

import re
from functools import cache
from html import unescape
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import mistune
import nh3
from markupsafe import Markup

from quaid.redaction import admit
from quaid.text.invisible import escaped
from quaid.vault import frontmatter
from quaid.vault.markdown import without_comments
from quaid.web.templating import memory_path

MAX_RENDERED = 200_000
"""Characters of a text that are rendered."""
MAX_PART = 100_000
"""Characters of one part of a long note."""
SECRET_LENGTH = 4_000
"""Characters of the longest secret, a private key."""
MAX_TRIED = 40
MAX_REASON = 1500
"""Characters of a reason, in whole lines."""
_COMPARED = re.compile(r"^- (?:before|after): .*\n?", re.MULTILINE)
_GAP = re.compile(r"\n{4,}|[ \t]{64,}")
_TAGS = set(  # those of callouts, footnotes and images last
    "p h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del mark table thead tbody tr th td a span br hr "  # noqa: SIM905
    "div details summary sup small img".split()
)
_ATTRIBUTES = {
    "a": {"href", "class", "id", "rel"}, "span": {"class"}, "code": {"class"}, "pre": {"class"}, "li": {"id"},
    "sup": {"id"}, "div": {"class", "data-kind"}, "details": {"class", "data-kind", "open"}, "summary": {"class"},
    "p": {"class"}, "img": {"src", "alt", "width", "loading"},
}  # fmt: skip
_CALLOUT = re.compile(r"<p>\[!([\w-]{1,40})\]([+-]?)[ \t]*([^\n]*?)(?:<br />)?(?:\n|</p>\n?)(.*)", re.DOTALL)
_KINDS = {
    "warn": "warning caution attention danger error bug failure fail missing",
    "good": "success check done tip hint important",
    "quiet": "quote cite example abstract summary tldr",
}
"""The look of a callout -> its types; all others are notes."""
_IMAGE = re.compile(r"(?![\w.+-]*:|[/\\]{2}).*\.(?:png|jpe?g|gif|webp|avif|svg)", re.IGNORECASE)
"""The path of an image, on no other host."""
_OUTSIDE = {"http", "https", "mailto"}


def render_note(source: str) -> Markup:
    """Return a note as HTML, without its frontmatter, comments and secrets."""
    return render_markdown(source[frontmatter.body_start(source) :])


def read_part(source: str, number: int) -> tuple[str, int]:
    """Return a part of a note that is too long for one page, the last one if there are fewer, and their number."""
    count = -(-len(source) // MAX_PART) if len(source) > MAX_RENDERED else 1
    number = min(number, count)
    start = _find_split(source, MAX_PART * (number - 1)) if number > 1 else 0
    return source[start : _find_split(source, MAX_PART * number) if number < count else None], count


def _find_split(text: str, near: int) -> int:
    """Return the end of a line before a place that is not within a secret: half of one would not be recognised."""
    place = near
    for _ in range(MAX_TRIED):
        place = text.rfind("\n", near - MAX_PART // 2, place) + 1
        if place == 0:
            break
        around = (max(0, place - SECRET_LENGTH), place, place + SECRET_LENGTH)
        halves = (text[slice(*pair)] for pair in pairwise(around))
        whole = admit(text[around[0] : around[2]], keep_lines=True).text
        if "".join(admit(half, keep_lines=True).text for half in halves) == whole:
            return place
        place -= 1
    return near


def without_compared(reason: str) -> str:
    """Return a reason without the texts before and after, which a diff shows better."""
    return _COMPARED.sub("", reason)


def render_reason(body: str) -> Markup:
    """Return the body of a commit as HTML, without what the diff next to it shows; as many whole lines as fit."""
    lines = without_compared(body).strip().splitlines()
    ends = accumulate(len(line) + 1 for line in lines)
    count = max(1, sum(end <= MAX_REASON for end in ends))
    shown = "\n".join(lines[:count])
    left = len(lines) - count
    more = f"\n\n… and {left} more line{'s' * (left != 1)}" if left > 0 else ""
    return render_markdown((shown if len(shown) <= MAX_REASON else f"{shown[:MAX_REASON]} …") + more)


def render_markdown(text: str) -> Markup:
    """Return markdown as HTML, without comments and secrets."""
    shown = escaped(admit(without_comments(text), keep_lines=True).text)
    cut = shown if len(shown) <= MAX_RENDERED else shown[:MAX_RENDERED] + "\n\n… (the rest is in the file)"
    narrowed = _GAP.sub(lambda gap: gap[0][:3], cut)  # each blank line would cost the parser a kilobyte
    html = nh3.clean(
        str(_markdown()(narrowed)),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_OUTSIDE,
        attribute_filter=_keep_attribute,
        link_rel=None,  # the renderer's own, so that links inside the memory have none
    )
    return Markup(html)  # noqa: S704 - sanitised just here


def _keep_attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute; None for the address of an image elsewhere than in the vault."""
    return None if (tag, name) == ("img", "src") and not value.startswith("/file/") else value


@cache
def _markdown() -> mistune.Markdown:
    made = mistune.create_markdown(
        escape=True, renderer=_Renderer(), plugins=["table", "strikethrough", "task_lists", "mark", "footnotes", "math"]
    )
    assert isinstance(made, mistune.Markdown)
    inline = made.inline
    inline.register("inline_footnote", r"\^\[(?P<in_inline_footnote>[^\[\]\n]{1,1000})\]", _parse, before="link")
    inline.register("wikilink", r"\[\[(?P<in_wikilink>[^\[\]\n]{1,400})\]\]", _parse, before="link")
    inline.register("embedding", r"!\[\[(?P<in_embedding>[^\[\]\n]{1,400})\]\]", _parse, before="link")
    inline.register("block_id", r"(?<!\S)\^(?P<in_block_id>[A-Za-z0-9-]{1,80})[ \t]*(?=\n|\Z)", _parse)
    return made


def _parse(_: Any, match: re.Match[str], state: Any) -> int:
    state.append_token({"type": match.lastgroup, "raw": match[f"in_{match.lastgroup}"]})
    return match.end()


class _Renderer(mistune.HTMLRenderer):
    """HTML of notes, in the methods that mistune calls by the names of its tokens."""

    def __init__(self) -> None:
        super().__init__(escape=True)

    def heading(self, text: str, level: int, **_: Any) -> str:
        level = min(level + 1, 6)  # the page has the first one
        return f"<h{level}>{text}</h{level}>\n"

    def wikilink(self, raw: str) -> str:
        target, _, alias = raw.partition("|")
        target = target.rstrip("\\").strip()
        note, _, part = target.partition("#")
        shown = mistune.escape(alias or " / ".join(filter(None, (note, part.lstrip("^")))))
        if part.startswith("^"):
            there = f"{memory_path(note) if note else ''}#b-{quote(part[1:])}"
        else:
            there = memory_path(target)
        return f'<a class="memory" href="{mistune.escape(there)}">{shown}</a>'

    def embedding(self, raw: str) -> str:
        target, _, shown = raw.partition("|")
        path = target.partition("#")[0].strip()
        if not _IMAGE.fullmatch(path):
            return self.wikilink(raw)
        return _show_image(path, "" if shown.isdigit() else shown, shown)

    def block_quote(self, text: str) -> str:
        """Return a quote, or the callout that it is in Obsidian; one that folds opens without a script."""
        if not (found := _CALLOUT.match(text.strip())):
            return f"<blockquote>\n{text}</blockquote>\n"
        name, fold, title, body = found.groups()
        kind = next((look for look, names in _KINDS.items() if name.lower() in names.split()), "note")
        body = body if body.startswith("<") or not body else f"<p>{body}"
        outer, inner, is_open = ("details", "summary", " open" * (fold == "+")) if fold else ("div", "p", "")
        head = f'<{inner} class="callout-title">{title.strip() or mistune.escape(name.capitalize())}</{inner}>'
        return f'<{outer} class="callout" data-kind="{kind}"{is_open}>{head}\n{body}</{outer}>\n'

    def inline_footnote(self, raw: str) -> str:
        return f"<small>({mistune.escape(raw)})</small>"

    def footnote_ref(self, key: str, index: int) -> str:
        del key
        return f'<sup id="fnref-{index}"><a href="#fn-{index}">{index}</a></sup>'

    def footnotes(self, text: str) -> str:
        return f'<div class="footnotes"><ol>{text}</ol></div>\n'

    def inline_math(self, text: str) -> str:
        return f'<code class="math">{mistune.escape(_with_signs(text))}</code>'

    def block_math(self, text: str) -> str:
        return f'<pre class="math"><code>{mistune.escape(_with_signs(text.strip()))}</code></pre>\n'

    def block_id(self, raw: str) -> str:
        return f'<a class="block" id="b-{raw}" href="#b-{raw}">^{raw}</a>'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        del title
        try:
            scheme, host, path, _, part = urlsplit(url)
        except ValueError:
            scheme, host, path, part = "?", "", "", ""
        if scheme in _OUTSIDE:
            return f'<a class="outside" rel="noreferrer noopener nofollow" href="{mistune.escape(url)}">{text}</a>'
        if scheme or host or not path:
            return f"{text} <code>{mistune.escape(url)}</code>"
        note = re.sub(r"^(?:\.{0,2}/)+", "", unquote(path))  # the end of a path names a note in any folder
        there = memory_path(note + (f"#{unquote(part)}" if part else ""))
        return f'<a class="memory" href="{mistune.escape(there)}">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if _IMAGE.fullmatch(url):
            alt, _, width = text.rpartition("|") if re.search(r"\|\d+\Z", text) else (text, "", "")
            return _show_image(unquote(url), alt, width)
        return self.link(f"image: {text or 'without a description'}", url, title)

    def task_list_item(self, text: str, checked: bool = False) -> str:
        return f"<li>{'☑' if checked else '☐'} {text}</li>\n"


def _with_signs(math: str) -> str:
    """Return TeX with the signs that HTML has by the same names: sigma, int, leq."""
    return re.sub(r"\\([A-Za-z]{2,20})", lambda name: unescape(f"&{name[1]};").replace(f"&{name[1]};", name[0]), math)


def _show_image(path: str, alt: str, width: str) -> str:
    """Return an image of the vault. Where its note lies is not known here, so the end of the path names it."""
    source = quote(re.sub(r"^(?:\.{0,2}/)+", "", path), safe="")
    size = f' width="{int(width)}"' if re.fullmatch(r"[1-9][0-9]{0,3}", width) else ""
    return f'<img src="/file/{source}" alt="{mistune.escape(alt or path)}" loading="lazy"{size}>'

"""Prompts are files: prompts/NAME.md, or the user's own version in ~/.config/quaid/prompts/, which has precedence.

A file has a head (`tier`, `max_output_tokens`), the system part, the input with `{{named}}` slots under `## Input`, and
the JSON schema of the answer under `## Answer`. Its version is the hash of its bytes, so that an answer and a commit
can name the exact text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quaid import place
from quaid.errors import PromptError
from quaid.llm.exchange import with_schema
from quaid.model import Tier
from quaid.redaction import admit
from quaid.text.invisible import without_unseen

_WHOLE = re.compile(
    r"---\n(?>(?P<head>.*?)^---\n)(?>(?P<system>.*?)^## Input\n)(?>(?P<input>.*?)^## Answer\n)(?P<answer>.*)",
    re.DOTALL | re.MULTILINE,
)
_HEAD_LINE = re.compile(r"(\w+): *(.*?) *(?:#.*)?$")
_SLOT = re.compile(r"\{\{(\w+)\}\}")
_FENCE = re.compile(r"```json\n(.*?)```", re.DOTALL)
_TAG = re.compile(r"</?([a-z]\w*)>")
_HEAD_KEYS = {"tier", "max_output_tokens"}
_TIERS: dict[str, Tier] = {"deep": "deep", "fast": "fast"}
_MAX_OUTPUT_TOKENS = 64_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file, parsed."""

    name: str
    version: str
    """The first twelve hex digits of the file's SHA-256."""
    tier: Tier
    max_output_tokens: int
    """The limit of an answer, without what a model thinks before it."""
    instructions: str
    """The system part, the same in every call."""
    input: str
    schema: Mapping[str, Any] = field(repr=False)
    path: Path

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def system(self) -> str:
        """The system part with the schema in its text, for models whose service does not show it to them."""
        return with_schema(self.instructions, self.schema)

    @property
    def slots(self) -> frozenset[str]:
        return frozenset(_SLOT.findall(self.input))

    def fill(self, inputs: Mapping[str, str]) -> str:
        """Return the input with its slots filled. Secrets and invisible characters are removed from a value, and it
        cannot close the tags around it.

        Raises:
            PromptError: the prompt has other slots than `inputs` has names.
        """
        if self.slots != inputs.keys():
            expected = ", ".join(sorted(inputs)) or "none"
            raise PromptError(self.path, f"its slots are {', '.join(sorted(self.slots)) or 'none'}, must be {expected}")
        tags = "|".join(sorted(set(_TAG.findall(self.input))))
        fences = re.compile(rf"<(?=\s*/?\s*(?:{tags})\b)", re.IGNORECASE) if tags else None

        def put(slot: re.Match[str]) -> str:
            value = without_unseen(admit(inputs[slot[1]], keep_lines=True).text)
            return fences.sub("‹", value) if fences else value  # noqa: RUF001 - looks alike but is not a tag

        return _SLOT.sub(put, self.input)


def user_prompts() -> Path:
    """Return the folder of the user's own versions, outside the vault: a clone does not decide what models read."""
    return place.config_folder() / "prompts"


def load_prompt(name: str, own: Path | None = None) -> Prompt:
    """Return the prompt `name`: the user's version in the folder `own` if there is one, else Quaid's.

    Raises:
        PromptError: the file does not exist, or does not have the form above.
    """
    packaged = _read_prompt(name, place.data_folder("prompts") / f"{name}.md")
    if own is None or not (own / f"{name}.md").is_file():
        return packaged
    prompt = _read_prompt(name, own / f"{name}.md")
    if prompt.schema != packaged.schema:
        raise PromptError(prompt.path, "the schema below ## Answer differs from that of Quaid's own version: copy it")
    return prompt


def _read_prompt(name: str, path: Path) -> Prompt:
    if not path.is_file():  # a pipe would block
        raise PromptError(path, "is not a file")
    try:
        return parse_prompt(name, path.read_bytes(), path)
    except OSError as error:
        raise PromptError(path, error.strerror or str(error)) from error


def parse_prompt(name: str, data: bytes, path: Path) -> Prompt:
    """Return the prompt in `data`, the bytes of the file at `path`.

    Raises:
        PromptError: they do not have the form above.
    """
    import hashlib

    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PromptError(path, "it is not UTF-8") from error
    found = _WHOLE.match(text)
    if found is None:
        raise PromptError(path, "it needs a head between --- lines, then ## Input, then ## Answer")
    if _SLOT.search(found["system"]):
        raise PromptError(path, "slots belong below ## Input: what is above is the same in every call")
    head = {each[1]: each[2] for line in found["head"].splitlines() if (each := _HEAD_LINE.match(line))}
    if head.keys() != _HEAD_KEYS:
        raise PromptError(path, f"its head must name {' and '.join(sorted(_HEAD_KEYS))}, and nothing else")
    if head["tier"] not in _TIERS:
        raise PromptError(path, f"tier is {head['tier']!r}, must be deep or fast")
    digits = head["max_output_tokens"]
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:9]) <= _MAX_OUTPUT_TOKENS and len(digits) < 9):
        raise PromptError(path, f"max_output_tokens is {digits!r}, must be a number up to {_MAX_OUTPUT_TOKENS}")
    fenced = _FENCE.search(found["answer"])
    try:
        schema = json.loads(fenced[1]) if fenced else None
    except (ValueError, RecursionError) as error:
        raise PromptError(path, f"the schema below ## Answer is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise PromptError(path, "there is no ```json block with an object below ## Answer")
    return Prompt(
        name=name,
        version=hashlib.sha256(data).hexdigest()[:12],
        tier=_TIERS[head["tier"]],
        max_output_tokens=int(digits),
        instructions=f"{found['system'].strip()}\n\nAnswer with one JSON object and nothing else.",
        input=found["input"].strip(),
        schema=schema,
        path=path,
    )

"""Prompts are files: prompts/NAME.md, and the user's own version of one in ~/.config/quaid/prompts/ goes before it.

A file has a head (`tier`, `max_output_tokens`), what the model is told every time, the input with `{{named}}` slots
under `## Input`, and the JSON schema of the answer under `## Answer`. Its version is the hash of its bytes, so that an
answer and a commit can say which text they rest on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quaid import place
from quaid.errors import PromptError
from quaid.llm.schema import schema_problem
from quaid.model import Tier
from quaid.redaction import admit

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
_MOST_OUTPUT = 64_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file, read."""

    name: str
    version: str
    """The first twelve hex digits of the file's SHA-256."""
    tier: Tier
    max_output_tokens: int
    """The most an answer may need, what a model thinks before it left aside."""
    system: str
    """What the model is told every time, the schema included: services without structured output need to read it."""
    input: str
    schema: Mapping[str, Any] = field(repr=False)
    path: Path

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def slots(self) -> frozenset[str]:
        return frozenset(_SLOT.findall(self.input))

    def fill(self, inputs: Mapping[str, str]) -> str:
        """The input with its slots filled. What is put in passes the gate and cannot close the tags of the prompt it
        stands between.

        Raises:
            PromptError: the prompt has other slots than `inputs` has names.
        """
        if self.slots != inputs.keys():
            expected = ", ".join(sorted(inputs)) or "none"
            raise PromptError(self.path, f"its slots are {', '.join(sorted(self.slots)) or 'none'}, must be {expected}")
        tags = "|".join(sorted(set(_TAG.findall(self.input))))
        fences = re.compile(rf"<(?=\s*/?\s*(?:{tags})\b)", re.IGNORECASE) if tags else None

        def put(slot: re.Match[str]) -> str:
            value = admit(inputs[slot[1]], keep_lines=True).text
            return fences.sub("‹", value) if fences else value  # noqa: RUF001 - looks alike to a reader, is no tag

        return _SLOT.sub(put, self.input)


def user_prompts() -> Path:
    """The folder of the user's own versions. It is not in the vault: what a model is told, no clone decides."""
    return place.config_folder() / "prompts"


def prompts_folder() -> Path:
    """prompts/ as the wheel carries it, else as it lies in a checkout."""
    from importlib.resources import files as package_files

    packaged = Path(str(package_files("quaid"))) / "data" / "prompts"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "prompts"


def load_prompt(name: str, own: Path | None = None) -> Prompt:
    """The prompt `name`: the owner's version from the folder `own` if there is one, else Quaid's.

    Raises:
        PromptError: there is none, or it is not of the form above.
    """
    packaged = _read_prompt(name, prompts_folder() / f"{name}.md")
    if own is None or not (own / f"{name}.md").is_file():
        return packaged
    prompt = _read_prompt(name, own / f"{name}.md")
    # What an owner's version says is theirs to choose; what form its answer has, Quaid has to read.
    if prompt.schema != packaged.schema:
        raise PromptError(prompt.path, "what stands below ## Answer is not what Quaid reads: take it from its own")
    return prompt


def _read_prompt(name: str, path: Path) -> Prompt:
    try:
        if not path.is_file():  # a pipe would keep us waiting
            raise PromptError(path, "is not a file")
        data = path.read_bytes()
    except OSError as error:
        raise PromptError(path, error.strerror or str(error)) from error
    return parse_prompt(name, data, path)


def parse_prompt(name: str, data: bytes, path: Path) -> Prompt:
    """A prompt file's bytes as a Prompt.

    Raises:
        PromptError: they are not of the form above.
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
        raise PromptError(path, "slots belong below ## Input: what stands above stays the same from call to call")
    head = _parse_head(found["head"], path)
    schema = _parse_schema(found["answer"], path)
    described = json.dumps(schema, ensure_ascii=False)
    return Prompt(
        name=name,
        version=hashlib.sha256(data).hexdigest()[:12],
        tier=_TIERS[head["tier"]],
        max_output_tokens=int(head["max_output_tokens"]),
        system=f"{found['system'].strip()}\n\nAnswer with one JSON object and nothing else. Its schema:\n{described}",
        input=found["input"].strip(),
        schema=schema,
        path=path,
    )


def _parse_head(text: str, path: Path) -> dict[str, str]:
    head = {found[1]: found[2] for line in text.splitlines() if (found := _HEAD_LINE.match(line))}
    if head.keys() != _HEAD_KEYS:
        raise PromptError(path, f"its head must name {' and '.join(sorted(_HEAD_KEYS))}, and nothing else")
    if head["tier"] not in _TIERS:
        raise PromptError(path, f"tier is {head['tier']!r}, must be deep or fast")
    digits = head["max_output_tokens"]
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:9]) <= _MOST_OUTPUT and len(digits) < 9):
        raise PromptError(path, f"max_output_tokens is {digits!r}, must be a number up to {_MOST_OUTPUT}")
    return head


def _parse_schema(text: str, path: Path) -> dict[str, Any]:
    found = _FENCE.search(text)
    try:
        schema = json.loads(found[1]) if found else None
    except (ValueError, RecursionError) as error:
        raise PromptError(path, f"the schema below ## Answer is not JSON: {error}") from error
    if schema is None:
        raise PromptError(path, "there is no ```json block below ## Answer")
    problem = schema_problem(schema)
    if problem:
        raise PromptError(path, problem)
    return dict(schema)

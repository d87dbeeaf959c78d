"""Files of the vault for the pages: the images that notes show, and a note to download. Nothing outside is read."""

import os
import re
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import NoteNotFoundError
from quaid.memory import Memory
from quaid.vault import files

MAX_IMAGE = 16 * 2**20
"""Bytes of an image that is shown."""
_SIGNATURES = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
    (rb"....ftypavi[fs]", "image/avif"),
    (rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE svg[^>\[]*>\s*)*<svg[\s>]", "image/svg+xml"),
)
"""How the content of a type begins. The name of a file says nothing about it."""
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"}
"""An image runs and loads nothing, though it were opened alone: SVG can have scripts."""


def read_image(memory: Memory, request: Request) -> Response:
    """Return the image of the vault with this path, else with this end of a path; the shortest of several."""
    wanted = request.path_params["path"]
    if path := _find_image(memory.root, wanted):
        data = files.read_note(path.parent, path.name, MAX_IMAGE + 1) or b""
        kind = next((kind for begin, kind in _SIGNATURES if re.match(begin, data[:2048], re.DOTALL)), None)
        if kind and len(data) <= MAX_IMAGE:
            return Response(data, media_type=kind, headers=_HEADERS)
    raise NoteNotFoundError(wanted)


def _find_image(root: Path, wanted: str) -> Path | None:
    """Return the file at a path of the vault, or that ends with it, without links and hidden folders; None for none."""
    parts = wanted.split("/")
    if not all(parts) or any(part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if parts[-1] in names:
            path = Path(folder, parts[-1]).relative_to(root)
            found += [path] if path.parts[-len(parts) :] == tuple(parts) else []
    return root / min(found, key=lambda path: (len(path.parts), path)) if found else None


def download(memory: Memory, request: Request) -> Response:
    """Return a note as it is written, as a file."""
    document = memory.get(request.path_params["reference"]).document
    name = quote(document.path.rpartition("/")[2])
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    data = files.read_note(memory.root, document.path) or b""
    return Response(data, media_type="text/markdown; charset=utf-8", headers=headers)

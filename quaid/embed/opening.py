"""Opens a converted model with the embedder of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quaid.embed import Embedder
    from quaid.embed.build import Build
    from quaid.settings import EmbeddingSettings


def open_build(build: Build, settings: EmbeddingSettings) -> Embedder:
    """Return the embedder of a converted model, not yet loaded."""
    if build.description.kind == "static":
        from quaid.embed.static import StaticEmbedder

        return StaticEmbedder(build, settings)
    from quaid.embed.local import LocalEmbedder

    return LocalEmbedder(build, settings)

"""Everything Quaid refuses to do, one class per fact.

Each class builds its own sentence: what is wrong with which thing, and the next step. The doors print the
sentence and leave with the class's exit code; anything that is not a `QuaidError` is a bug.
"""

from __future__ import annotations


class QuaidError(Exception):
    """An expected failure. `exit_code` is what the process leaves with."""

    exit_code = 1
    code = "error"


class UsageError(QuaidError):
    """The call itself makes no sense."""

    exit_code = 2
    code = "usage"


class VaultNotFoundError(QuaidError):
    code = "vault_not_found"

    def __init__(self, path: object) -> None:
        super().__init__(f"No vault at {path}. Make one with: quaid init {path}")


class VaultExistsError(QuaidError):
    code = "vault_exists"

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} is a vault already. See it with: quaid status --vault {path}")


class VaultReadOnlyError(QuaidError):
    code = "read_only"

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"Cannot write to {path} ({reason}): nothing was changed. Make the folder writable and try again."
        )


class DiskFullError(QuaidError):
    code = "disk_full"

    def __init__(self, path: object) -> None:
        super().__init__(f"The disk that holds {path} is full: nothing was changed. Free some space and try again.")


class LockedError(QuaidError):
    """Somebody else is at work; the same call will go through later."""

    exit_code = 75
    code = "locked"

    def __init__(self, what: str, next_step: str = "Try again in a moment.") -> None:
        super().__init__(f"{what}: nothing was changed. {next_step}")


class NoteNotFoundError(QuaidError):
    code = "not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(f"No note is called {reference!r}. Look for it with: quaid search {reference!r}")


class AmbiguousReferenceError(QuaidError):
    code = "ambiguous"

    def __init__(self, reference: str, candidates: list[str]) -> None:
        shown = ", ".join(candidates[:5])
        super().__init__(f"{reference!r} could be any of {shown}. Give more of the id.")


class NoteChangedError(QuaidError):
    """The note on disk is not the one the change was planned on (law 5)."""

    exit_code = 75
    code = "note_changed"

    def __init__(self, rel_path: str) -> None:
        super().__init__(f"{rel_path} was changed by someone else meanwhile: nothing was overwritten. Try again.")


class NoteBrokenError(QuaidError):
    code = "note_broken"

    def __init__(self, rel_path: str, problem: str) -> None:
        super().__init__(f"{rel_path} cannot be edited safely ({problem}). Repair it in an editor and try again.")


class NotOursError(QuaidError):
    code = "not_ours"

    def __init__(self, rel_path: str) -> None:
        super().__init__(f"{rel_path} is your own note and Quaid never edits those. Change it in your editor.")


class UncommittedError(QuaidError):
    """Removing the note would lose what only the working tree has."""

    code = "uncommitted"

    def __init__(self, rel_path: str) -> None:
        super().__init__(
            f"{rel_path} holds changes that git does not have, so forgetting it would lose them. "
            f"Commit it first: git add -- '{rel_path}' && git commit"
        )


class FactTooShortError(QuaidError):
    code = "too_short"

    def __init__(self, text: str) -> None:
        super().__init__(f"A fact needs at least three words, {text!r} has fewer. Say who or what it is about.")


class BadInputError(QuaidError):
    """Input that cannot be read as what it claims to be."""

    code = "bad_input"


class ConfigError(QuaidError):
    code = "config"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}. List the settings with: quaid config")


class GitError(QuaidError):
    """git refused; its own words are kept."""

    code = "git"

    def __init__(self, doing: str, said: str) -> None:
        super().__init__(f"git could not {doing}: {said.strip() or 'it gave no reason'}")


class GitMissingError(QuaidError):
    code = "git_missing"

    def __init__(self) -> None:
        super().__init__("git is not installed or not on the PATH. Install git 2.30 or newer and try again.")


class MassRemovalError(QuaidError):
    """So many notes vanished at once that the disk, not the owner, may be the cause."""

    code = "mass_removal"

    def __init__(self, gone: int, known: int) -> None:
        super().__init__(
            f"{gone:,} of {known:,} notes vanished since the last sync and git does not say why. "
            "If that is right: quaid sync --accept-removals. If not, bring them back: git checkout -- ."
        )


class WeightsMissingError(QuaidError):
    code = "weights_missing"

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            f"The weights of {model} could not be had ({reason}). Keyword and graph recall work without them; "
            "fetch them later with: quaid doctor --fetch"
        )


class EmbeddingError(QuaidError):
    """The configured embedding service did not answer as it should."""

    code = "embedding"

"""Everything Quaid refuses to do, one class for each fact that something handles or that several places state.

Each class builds its own sentence: what is wrong with which thing, and the next step. Where one place states a fact,
it raises a `QuaidError` with the sentence and the code. The doors print the sentence and leave with the exit code;
anything that is not a `QuaidError` is a bug.
"""

from collections.abc import Sequence
from shlex import quote

_MAX_CANDIDATES = 20
"""Notes that are listed for a reference that could be any of them."""


class QuaidError(Exception):
    """An expected failure. `exit_code` is what the process leaves with."""

    exit_code = 1
    code = "error"

    def __init__(self, sentence: str = "", *, code: str = "") -> None:
        super().__init__(sentence)
        if code:
            self.code = code


class UsageError(QuaidError):
    """The call itself makes no sense."""

    exit_code = 2
    code = "usage"


class VaultNotFoundError(QuaidError):
    code = "vault_not_found"

    def __init__(self, path: object) -> None:
        super().__init__(f"No vault at {path}. Make one with: quaid init {_typed(path)}")


class UntrustedVaultError(QuaidError):
    """A quaid.toml alone does not make a folder this user's vault: it may be a stranger's clone."""

    code = "untrusted_vault"

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} is a vault that you have not trusted: nothing in it was read. "
            f"If it is yours, or you know what is in it: quaid trust {_typed(path)}"
        )


class ForeignVaultError(QuaidError):
    code = "foreign_vault"

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} belongs to another user: nothing in it was read. Copy it, or take it over with chown."
        )


class VaultExistsError(QuaidError):
    code = "vault_exists"

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} is a vault already. See it with: quaid status --vault {_typed(path)}; "
            f"if it is not trusted yet: quaid trust {_typed(path)}"
        )


class UnwritableError(QuaidError):
    """A file of the vault or of the state folder cannot be used, for this `reason`: without it, reading goes on."""

    reason = ""


class VaultReadOnlyError(UnwritableError):
    code = "read_only"

    def __init__(self, path: object, reason: str) -> None:
        self.reason = f"{path} cannot be written ({reason})"
        super().__init__(f"{self.reason}: nothing was changed. Make the folder writable and try again.")


class DiskFullError(UnwritableError):
    code = "disk_full"

    def __init__(self, path: object) -> None:
        super().__init__(f"The disk that holds {path} is full: nothing was changed. Free some space and try again.")
        self.reason = f"the disk that holds {path} is full"


class DiskFailedError(UnwritableError):
    code = "disk_failed"

    def __init__(self, path: object, reason: str) -> None:
        self.reason = f"{path} could not be read or written ({reason})"
        super().__init__(f"{self.reason}: the disk or its limits refuse. Check them and try again.")


class StateDamagedError(QuaidError):
    """A database of the state folder was damaged: it held no memory that is not in a note."""

    exit_code = 75
    code = "state_damaged"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} was damaged and is preserved as {name}.damaged. Every memory is in its note; counters, queued "
            "notes and logs are those of its last daily copy, if there is one. Try again."
        )


class LockedError(QuaidError):
    """Another process holds the lock; the same call will succeed later."""

    exit_code = 75
    code = "locked"

    def __init__(self, what: str, next_step: str = "Try again in a moment.") -> None:
        super().__init__(f"{what}: nothing was changed. {next_step}")
        self.reason = what


class NoteNotFoundError(QuaidError):
    code = "not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(f"No note is called {reference!r}. Look for it with: quaid search {reference!r}")


class PartNotFoundError(NoteNotFoundError):
    def __init__(self, path: str, part: str) -> None:
        QuaidError.__init__(self, f"{path} has no heading {part!r}. See what it has with: quaid get {path!r}")


class AmbiguousReferenceError(QuaidError):
    """`candidates` are (reference, text): the reference of one means that one alone."""

    code = "ambiguous"

    def __init__(self, reference: str, candidates: Sequence[tuple[str, str]]) -> None:
        shown = [f"  {number}  {called}  {text}".rstrip() for number, (called, text) in enumerate(candidates, 1)]
        more = [f"  … and {len(shown) - _MAX_CANDIDATES:,} more"] if len(shown) > _MAX_CANDIDATES else []
        super().__init__(
            "\n".join([f"{reference!r} could be any of these. Give one of them:", *shown[:_MAX_CANDIDATES], *more])
        )
        self.candidates = tuple(candidates)


class NothingToReplaceError(QuaidError):
    code = "nothing_to_replace"

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"No fact that still holds is called {reference!r} or says that. Give the id of one; look for it with: "
            f"quaid recall {quote(reference)}"
        )


class NoteChangedError(QuaidError):
    """The note on disk is not the one the change was planned on (law 5)."""

    exit_code = 75
    code = "note_changed"

    def __init__(self, rel_path: str) -> None:
        super().__init__(f"{rel_path} was changed by someone else: nothing was overwritten. Try again.")


class NoteConflictError(NoteChangedError):
    """The note is another version than the caller has read, by the hash it expected."""

    def __init__(self, rel_path: str) -> None:
        QuaidError.__init__(self, f"{rel_path} has changed since you read it: nothing was overwritten. Read it again.")


class NoteLockedError(QuaidError):
    code = "note_locked"

    def __init__(self, rel_path: str, lock: str) -> None:
        super().__init__(
            f"{rel_path} is locked by its owner ({lock} says `locked: true`): nothing was changed. "
            "Only they change it, or take that out."
        )


class NoteBrokenError(QuaidError):
    code = "note_broken"

    def __init__(self, rel_path: str, problem: str) -> None:
        super().__init__(f"{rel_path} cannot be edited safely ({problem}). Repair it in an editor and try again.")


class NotOursError(QuaidError):
    code = "not_ours"

    def __init__(self, rel_path: str) -> None:
        super().__init__(f"{rel_path} is its owner's own note, which Quaid never edits: only they change or delete it.")


class UnsavedWorkError(QuaidError):
    """Files that no branch has would end up in another memory, or be lost."""

    code = "unsaved"

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(
            f"{name_first(paths, 1)} is not committed yet: nothing was changed. Commit it, or put it aside with: "
            "git stash push -u"
        )


class FactTooShortError(QuaidError):
    code = "too_short"

    def __init__(self, text: str) -> None:
        super().__init__(f"A fact needs at least three words, {text!r} has fewer. Say who or what it is about.")


class BadInputError(QuaidError):
    """Input that cannot be read as what it claims to be."""

    code = "bad_input"

    @classmethod
    def unreadable(cls, name: object, error: Exception) -> "BadInputError":
        """Return the error for a file that cannot be opened or read."""
        reason = getattr(error, "strerror", None) or str(error)
        return cls(f"{name} cannot be read ({reason}). Check the path and its permissions.")


class NothingSaidError(BadInputError):
    """A transcript in which nobody says anything."""

    def __init__(self) -> None:
        super().__init__("The transcript holds nothing that anybody said. Give one with user or assistant turns.")


class ConfigError(QuaidError):
    code = "config"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}. List the settings with: quaid config")


class SettingError(ConfigError):
    """Settings that cannot be used, each a sentence with its place; all others can."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        QuaidError.__init__(self, f"{'; '.join(problems)}. Set another value with: quaid config KEY VALUE")


class GitError(QuaidError):
    """git refused. The message has git's own words."""

    code = "git"

    def __init__(self, doing: str, said: str) -> None:
        self.doing, self.said = doing, said
        super().__init__(f"git could not {doing}: {said.strip() or 'it gave no reason'}")


class CommitRefusedError(GitError):
    """git would not make a commit for a reason that a setting ends."""

    def __init__(self, cause: str, said: str, next_step: str) -> None:
        words = " ".join(said.split()) or "it gave no reason"
        QuaidError.__init__(self, f"git did not commit: {cause} ({words}). {next_step}.")
        self.doing, self.said = "commit", said


class ProposalError(QuaidError):
    """A change of another repository cannot be put on a branch there."""

    code = "proposal"

    def __init__(self, place: object, problem: str, next_step: str) -> None:
        super().__init__(f"No branch was made in {place} ({problem}): nothing was changed. {next_step}.")
        self.problem = problem


class GitMissingError(QuaidError):
    code = "git_missing"

    def __init__(self) -> None:
        super().__init__("git is not installed or not on the PATH. Install git 2.30 or newer and try again.")


class RevisionError(QuaidError):
    """The history has nothing to show at the point that was asked for."""

    code = "revision"

    def __init__(self, wanted: str, problem: str) -> None:
        super().__init__(
            f"Cannot go back to {wanted!r}: {problem}. Give a commit (HEAD~3, a tag, an id) or a day (2026-03-01); "
            "see what there is with: quaid log"
        )


class CouldNotAskError(QuaidError):
    """A question whose exit code is the answer could not be put. `git bisect run` passes over such a commit."""

    exit_code = 125
    code = "could_not_ask"

    def __init__(self, reason: object) -> None:
        super().__init__(f"This could not be decided either way. {reason}")


class MassRemovalError(QuaidError):
    """So many notes vanished at once that the disk, not the owner, may be the cause."""

    code = "mass_removal"

    def __init__(self, gone: int, known: int, root: object) -> None:
        self.reason = f"{gone:,} of {known:,} notes vanished or were emptied since the last sync"
        git = f"git -C {quote(str(root))}"
        # Without -f it writes over nothing that is there, whatever its owner has not committed yet.
        super().__init__(
            f"{self.reason} and git does not say why. If that is right: quaid sync --accept-removals. If not, bring "
            f"the deleted files back, which touches no other: "
            f"{git} ls-files -z --deleted | {git} checkout-index -z --stdin"
        )


class WeightsMissingError(QuaidError):
    code = "weights_missing"

    def __init__(self, model: str, reason: str, folder: object = None) -> None:
        """`folder` is where they belong, given where a download was tried or cannot be."""
        self.next_step = "quaid doctor --fetch"
        step = f"download them with: {self.next_step}"
        if folder is not None:
            self.next_step = step = f"copy {folder} from a machine that has it, see docs/how-to/install.md"
        super().__init__(
            f"The weights of {model} are missing ({reason}). Keyword and graph recall work without them; {step}"
        )


class EmbeddingError(QuaidError):
    """The configured embedding service did not answer as it should."""

    code = "embedding"


class EmbeddingServiceError(EmbeddingError):
    """The embedding service is down, overloaded or set wrongly: no text is to blame."""


class ModelError(QuaidError):
    """A language model was asked for and gave no answer that can be used. What needs none goes on without it."""

    code = "model"


class ModelUnavailableError(ModelError):
    """There is no model to ask, or its provider would not take the question."""

    code = "model_unavailable"

    def __init__(self, problem: str, next_step: str = "See which model is used and why with: quaid doctor") -> None:
        super().__init__(f"{problem}. {next_step}")
        self.problem = problem
        self.next_step = next_step


class ModelRefusedError(ModelError):
    """The model, or a filter of its service, refused. `raw` names the filter, and has the model's words."""

    code = "model_refused"

    def __init__(self, model: str, prompt: str, raw: str = "") -> None:
        why = " ".join(raw.split())[:200] or "no reason given"
        step = "Reword or remove what it was given, or name another model: quaid config models.deep NAME"
        super().__init__(f"{model} refused to answer the prompt {prompt} ({why}). {step}")
        self.raw = raw


class ModelAnswerError(ModelError):
    """The model answered something that does not fit the prompt's schema, twice, or was cut off.

    `raw` is what it wrote, all of it: two answers with a line of --- between; empty where its service gave no text.
    """

    code = "model_answer"

    def __init__(self, model: str, prompt: str, problem: str, raw: str = "") -> None:
        super().__init__(
            f"{model} answered the prompt {prompt} with something that cannot be used ({problem}). Try again, or name "
            "a more capable model: quaid config models.deep NAME, or models.fast"
        )
        self.raw = raw


class ModelTimeoutError(ModelError):
    code = "model_timeout"

    def __init__(self, model: str, limit_s: float) -> None:
        super().__init__(f"{model} did not answer within {limit_s:g} s, so Quaid went on without it. Try again later.")


class BudgetExceededError(ModelError):
    """The call was not made: with its estimate a cap would be exceeded."""

    code = "budget"

    def __init__(self, setting: str, cap: str, spent: str, estimate: str) -> None:
        super().__init__(
            f"No model was asked: {spent} spent and {estimate} more at most would exceed {setting} = {cap}. "
            f"Wait, or raise it: quaid config {setting} NUMBER"
        )


class PromptError(ModelError):
    """A prompt file, perhaps the owner's own version of it, cannot be used."""

    code = "prompt"

    def __init__(self, where: object, problem: str) -> None:
        super().__init__(f"The prompt {where} cannot be used ({problem}). Repair that file, or delete your version.")


class HostConfigError(QuaidError):
    """The config of a program that agents live in cannot be read, understood or written."""

    code = "host_config"

    def __init__(self, path: object, problem: str, snippet: str = "") -> None:
        step = f"Put that right and try again{f', or add this yourself: {snippet}' if snippet else '.'}"
        super().__init__(f"{path} was left alone ({problem}): nothing was changed. {step}")


class HookProofError(QuaidError):
    """The program that a host would start did not do what Quaid installed it for."""

    code = "hook_proof"


TROUBLE_FOR_ALL = (ModelUnavailableError, ModelTimeoutError, BudgetExceededError)
"""Errors that the next question to a model would meet as well."""

NOT_INDEXED = (LockedError, MassRemovalError, UnwritableError)
"""Errors after which the index is not up to date with the files yet."""


def name_first(names: Sequence[str], most: int = 3) -> str:
    """Return the first `most` of them, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count(number: int, thing: str, things: str | None = None) -> str:
    """Return `1 note`, `1,200 notes`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def _typed(path: object) -> str:
    """Return a path as it is typed into a shell."""
    return quote(str(path))

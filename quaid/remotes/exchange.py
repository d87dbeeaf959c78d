"""The remotes of a vault: pull, push, the lease of the janitor, and how far apart the machines are."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from random import SystemRandom
from typing import NamedTuple

from quaid.errors import BadInputError, GitError, LockedError, QuaidError
from quaid.history.addresses import complete, protocol_of
from quaid.history.purged import PurgedError
from quaid.history.remotes import FETCHED, LEASE, Line, Remote, RemoteRefusedError, RemoteUnreachableError, check_branch
from quaid.local import claimed
from quaid.local.locks import try_lock
from quaid.open_vault import OpenVault
from quaid.remotes import lease as leases
from quaid.remotes import pulling, trusted
from quaid.remotes.contact import LOCK, Contact, device, read_contact, write_contact
from quaid.remotes.incoming import Source
from quaid.remotes.pulling import Pulled
from quaid.trust import make_state_folder

ORIGIN = "origin"
PUSH_ATTEMPTS = 8
PAUSE_S = 0.1
"""The pause after the first push that others were quicker than, at most; it doubles each time, to `MAX_PAUSE_S`."""
MAX_PAUSE_S = 5.0


class RemoteState(NamedTuple):
    """A remote as the last call left it. `trust` is yes, no or changed; `own` whether only its owner writes there, None
    where they have not stated it; `claims` counts the facts from there that somebody else claims; `ahead` and `behind`
    count commits, None where nothing is known; `janitor` is the machine that tidies, until `janitor_until`. Times are
    ISO 8601 in UTC.
    """

    name: str
    address: str
    trust: str
    own: bool | None = None
    claims: int = 0
    ahead: int | None = None
    behind: int | None = None
    reached: str = ""
    offline_since: str = ""
    problem: str = ""
    janitor: str = ""
    janitor_until: str = ""


class PushDone(NamedTuple):
    """What became of a push: how many commits went, and what had to be pulled before."""

    remote: str
    commits: int
    pulled: tuple[Pulled, ...] = ()


def list_states(vault: OpenVault) -> list[RemoteState]:
    """Return how each remote is, as far as is known without asking it."""
    states, claims = [], list(claimed.read(vault.root).values())
    for remote in vault.git.remotes.list_all():
        contact, distance = read_contact(vault.root, remote.name), _distance(vault, remote.name)
        known = trusted.list_trusted(vault.root).get(remote.name)
        held = vault.git.remotes.read_lease(remote.name)
        lease = leases.parse_lease(held[1]) if held else None
        states.append(
            RemoteState(
                remote.name,
                remote.shown,
                "no" if known is None else "yes" if known.address == remote.shown else "changed",
                own=known.own if known else None,
                claims=claims.count(remote.name),
                ahead=distance[0] if distance else None,
                behind=distance[1] if distance else None,
                reached=contact.reached,
                offline_since=contact.offline_since,
                problem=contact.problem,
                janitor=lease.name if lease else "",
                janitor_until=lease.until.isoformat() if lease else "",
            )
        )
    return states


def _distance(vault: OpenVault, name: str) -> tuple[int, int] | None:
    history = vault.git
    state = history.state()
    theirs = history.remotes.fetched(name, state.branch) if state.branch else None
    return history.count_apart(state.head, theirs) if state.head and theirs else None


class Exchange:
    """Exchange the history of a vault with its remotes. `settle` settles what a merge of two machines left."""

    def __init__(self, vault: OpenVault, settle: Callable[[OpenVault], object]) -> None:
        self._vault = vault
        self._root = vault.root
        self._settings = vault.settings
        self._settle = settle

    def add(self, address: str, name: str = ORIGIN, *, own: bool | None = None) -> Remote:
        """Add a remote, at the owner's word: all of the vault's history goes there from now on. Raises BadInputError:
        the address is none, the name is taken, or the vault is a part of a larger repository.
        """
        remotes = self._vault.git.remotes
        remotes.check_whole()
        remote = remotes.add(name, complete(address))
        trusted.trust(self._root, remote, own=own)
        return remote

    def trust(self, name: str, *, own: bool | None = None) -> Remote:
        """Trust a remote of .git/config as it is now, at the owner's word. What came from there is theirs if it is
        their `own`. Raises BadInputError: there is none.
        """
        remotes = self._vault.git.remotes
        remotes.check_whole()
        remote, state = remotes.read(name), self._vault.git.state()
        if state.branch and state.head and (theirs := remotes.fetched(name, state.branch)):
            self._check_purged(Source(name, state.branch, theirs), remotes.merged(name, state.branch))
        trusted.trust(self._root, remote, own=own)
        remotes.keep_cloned(name)
        if own:
            claims = claimed.read(self._root)
            claimed.write(self._root, {note_id: of for note_id, of in claims.items() if of != name})
        write_contact(self._root, name, None)
        return remote

    def remove(self, name: str) -> None:
        """Forget a remote; what it has stays there. Raises BadInputError: there is none."""
        self._vault.git.remotes.remove(name)
        trusted.forget(self._root, name)
        write_contact(self._root, name, None)

    # -- pull and push -------------------------------------------------------------------------------------------

    def pull(self, name: str | None = None, *, accept_removals: bool = False, accept: str = "") -> Pulled:
        """Fetch what the remote has and merge it; `accept` is the digest of the steering files that its owner has seen.

        Raises:
            RemoteUnreachableError, RemoteRefusedError, PurgedError, IncomingRefusedError, LockedError,
            GitError: nothing was changed; another QuaidError where the remote is not trusted, its history or the
            owner's is another one than it was, or work of theirs is in the way.
        """
        remote = self._find(name)
        with self._recording(remote.name):
            return self._pull(remote, accept, accept_removals=accept_removals)

    def push(self, name: str | None = None) -> PushDone:
        """Push the branch; where others were quicker, pull and push again. Nothing of theirs is ever left behind.

        Raises: as `pull`.
        """
        remote = self._find(name)
        with self._recording(remote.name):
            return self._push(remote)

    def exchange(self) -> None:
        """Do what `git.sync` says with each trusted remote, unless another process is at it. A remote that does not
        answer, and one that needs its owner, is remembered for `quaid status`.
        """
        history, mode = self._vault.git, self._settings.git.sync
        with try_lock(make_state_folder(self._root) / LOCK) as is_ours:
            for name in trusted.list_trusted(self._root) if is_ours else ():
                with suppress(QuaidError):
                    remote = self._find(name)
                    with self._recording(name):
                        if mode == "auto":
                            self._pull(remote)
                            state = history.state()
                            if state.branch and state.head != history.remotes.fetched(name, state.branch):
                                self._push(remote)
                        elif mode == "ask":
                            self._fetch(remote)

    def _fetch(self, remote: Remote) -> Source | None:
        """Fetch our branch of a remote; None where it has none."""
        history, name = self._vault.git, remote.name
        branch = check_branch(history.state().branch)
        known, line = history.remotes.merged(name, branch), self._line(remote.address)
        replaced = history.purges.replaced
        if replaced and (tip := line.look(f"refs/heads/{branch}")) in replaced:
            # The history from before a purge here is not even fetched.
            raise PurgedError(name, tip, f"Put yours in its place: {_replace(name, branch, tip)}")
        theirs = history.remotes.fetch(line, name, branch)
        source = Source(name, branch, theirs, bool(trusted.check(self._root, remote).own)) if theirs else None
        self._check_purged(source, known)
        if theirs and known and not history.has_adopted(theirs):
            if not history.has_adopted(known):
                raise QuaidError(
                    f"Your branch no longer has what {name} was given: nothing was pulled or pushed. If that is to "
                    f"come back: git merge {name}/{branch}. If not, put your history in its place there with git.",
                    code="rewritten_here",
                )
            if not history.has_adopted(known, theirs):
                raise QuaidError(
                    f"The history of {name} was rewritten since you last had it: nothing was pulled. If that is right, "
                    f"put your own commits on the new one: git rebase --autostash --onto {theirs[:12]} {known[:12]}",
                    code="remote_rewritten",
                )
        if theirs:
            history.remotes.show(name, branch, theirs)
        return source

    def _check_purged(self, source: Source | None = None, known: str | None = None) -> None:
        """Refuse histories with what was purged: ours, and a remote's, of which we have `known`. Raises PurgedError."""
        history, purges = self._vault.git, self._vault.git.purges
        head, theirs = history.state().head, source.commit if source else None
        if head is None:
            return
        if found := purges.find(head, theirs):
            step = "clone the vault anew (quaid clone) and copy the files that only you have"
            is_old = theirs and not history.has_adopted(theirs)
            if known and theirs and is_old and history.has_adopted(known) and not purges.has_own_version(theirs, known):
                step = f"move your own commits: git rebase --autostash --onto {theirs} {known}"
            same = "Purge it here too, with the same command, then: quaid pull"
            raise PurgedError("Your history here", found, f"{same}. If you do not know the text, {step}")
        if source and (found := purges.find(source.commit)):
            merge = f"git merge {FETCHED}/{source.remote}/heads/{source.branch}"
            step = f"{merge} && {_replace(source.remote, source.branch, source.commit)}"
            raise PurgedError(source.remote, found, f"Purge it here again, then: {step}")
        purges.accept(head, theirs)

    def _pull(self, remote: Remote, accept: str = "", *, accept_removals: bool = False) -> Pulled:
        source = self._fetch(remote)
        if source is None:
            return Pulled(None)
        pulled = pulling.pull(self._vault, source, accept, accept_removals=accept_removals)
        self._vault.git.remotes.keep_merged(remote.name, source.branch, source.commit)
        if pulled.commit:
            self._vault.git.purges.accept(pulled.commit)
            self._vault.catch_up(frozenset(pulled.changed))
        if pulled.merged:
            with suppress(LockedError):  # the janitor, or the next sync, does it
                self._settle(self._vault)
        return pulled

    def _push(self, remote: Remote) -> PushDone:
        history, remotes, line = self._vault.git, self._vault.git.remotes, self._line(remote.push_address)
        branch = check_branch(history.state().branch)
        pulled: list[Pulled] = []
        for attempt in range(PUSH_ATTEMPTS):
            head = history.state().head
            if head is None:
                raise GitError("push", "the vault has no commit yet")
            if history.purges.has_unread(head):
                self._fetch(remote)  # by what the remote has, the new list says what of ours was purged
            else:
                self._check_purged()
            known = remotes.fetched(remote.name, branch)
            if remotes.push(line, remote.name, head, branch):
                # With the lease of a run that found nobody to give it to. Another one's that was first stays.
                own, theirs = (remotes.read_lease(name) for name in (None, remote.name))
                if own is not None and own != theirs:
                    with suppress(RemoteRefusedError, GitError):
                        line.push(own[0], LEASE)
                return PushDone(remote.name, remotes.count_new(head, known), tuple(pulled))
            time.sleep(SystemRandom().uniform(0, min(PAUSE_S * 2**attempt, MAX_PAUSE_S)))
            pulled.append(self._pull(remote))
        raise LockedError(f"Others keep pushing to {remote.name}")

    # -- the lease of the janitor --------------------------------------------------------------------------------

    def hold_lease(self, now: datetime, *, take_over: bool = False) -> None:
        """Be the machine that tidies. A vault without a trusted remote needs no lease; where nobody answers, what was
        last known counts. With `git.sync = "auto"` what the others have is pulled first.

        Raises:
            QuaidError: another machine is, and it is not to be taken over.
        """
        is_auto = self._settings.git.sync == "auto"
        if is_auto:
            self.exchange()
        for name in trusted.list_trusted(self._root):
            held: leases.Lease | None = None
            with suppress(QuaidError):  # nobody answers, or takes leases: the night is not put off for that
                held = self._hold_lease_at(self._find(name), now, take_over=take_over, asks=is_auto)
            if held is not None:
                raise QuaidError(
                    f"The janitor of this vault runs on {held.name} until {held.until:%Y-%m-%d %H:%M} UTC: nothing was "
                    "changed. To have it run here from now on: quaid janitor run --take-over",
                    code="lease_held",
                )

    def _hold_lease_at(self, remote: Remote, now: datetime, *, take_over: bool, asks: bool) -> leases.Lease | None:
        """Take the lease at a remote. Return the one of another machine that is in the way."""
        remotes, mine = self._vault.git.remotes, device(self._root)
        for _ in range(PUSH_ATTEMPTS):
            known = remotes.read_lease(remote.name)
            theirs = leases.parse_lease(known[1]) if known else None
            if theirs and not take_over and leases.blocks_run(theirs, mine, now):
                return theirs
            after = known or remotes.read_lease()
            text = leases.render_lease(mine, now)
            made = remotes.write_lease(text, after[0] if after else None)
            if not asks or self._line(remote.push_address).push(made, LEASE):
                break
            self._fetch(remote)
        return None

    # -- what they share -----------------------------------------------------------------------------------------

    def _find(self, name: str | None) -> Remote:
        """Return the referenced remote, if it is trusted as it is."""
        remotes = self._vault.git.remotes
        remotes.check_whole()
        if name is None:
            names = [remote.name for remote in remotes.list_all()]
            if not names:
                raise BadInputError("This vault has no remote. Add one with: quaid remote add URL")
            known = [each for each in names if each in trusted.list_trusted(self._root)]
            name = ORIGIN if ORIGIN in (known or names) else (known or names)[0]
        remote = remotes.read(name)
        trusted.check(self._root, remote)
        return remote

    def _line(self, address: str) -> Line:
        if self._settings.offline and protocol_of(address) != "file":
            raise RemoteUnreachableError(address, "the setting offline is on")
        return Line(self._root, address, self._settings.git.timeout_s, self._vault.show_progress)

    @contextmanager
    def _recording(self, name: str) -> Iterator[None]:
        """Remember how the call ends, and how far apart the two are if the owner wants to be asked."""
        contact, now = read_contact(self._root, name), datetime.now(UTC).isoformat(timespec="seconds")
        try:
            yield
        except RemoteUnreachableError:
            write_contact(self._root, name, replace(contact, asked=now, offline_since=contact.offline_since or now))
            raise
        except LockedError:  # somebody is at work: the next call
            raise
        except QuaidError as error:
            write_contact(self._root, name, replace(contact, asked=now, offline_since="", problem=str(error)))
            raise
        ahead, behind = (_distance(self._vault, name) if self._settings.git.sync == "ask" else None) or (0, 0)
        numbers = [(number, what) for number, what in ((behind, "pull"), (ahead, "push")) if number]
        apart = " and ".join(f"{number:,} commit{'s' * (number > 1)} to {what}" for number, what in numbers)
        reminder = f"{name}: {apart}: quaid {numbers[0][1]}" if numbers else ""
        write_contact(self._root, name, Contact(now, now, reminder=reminder))


def _replace(remote: str, branch: str, commit: str) -> str:
    """Return the command of git that puts our history in the place of a remote's, which is at `commit`."""
    return f"git push --force-with-lease={branch}:{commit} {remote} {branch}"

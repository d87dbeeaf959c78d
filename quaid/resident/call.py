"""Client side of the resident process: find its socket, send a command or event, return its output.

If it does not reply in time, the command runs in this process. Imports next to nothing: most of the time of such a call
is the start of Python.
"""

from __future__ import annotations

import _socket  # the module around it takes as long to import as Python to start
import os
import stat
import sys
import zlib

from quaid.place import RUN_DIR, config_path, find_vault_path, state_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SWITCH = "QUAID_RESIDENT"
"""The variable of the setting `resident`; `off` disables it."""
COMMANDS = frozenset({"recall", "search", "context", "list"})
EVENTS = frozenset({"session-start", "user-prompt-submit"})
ABOUT = "about"
"""The request for a description of the listening process."""
NO_HOOKS = "QUAID_NO_HOOKS"
"""Set for models that Quaid itself calls: hooks ignore their sessions."""
ANSWER_S = 1.0
"""Seconds after which a command runs in its own process: the listening one is busy."""
MAX_INPUT = 64_000_000
MAX_SENT = 1_000_000
"""Bytes of an event that is sent to another process."""
_MAX_PATH = 100
"""Bytes; the name of a socket may have 104 on macOS."""
_ENVIRON = ("NO_COLOR", "TERM")
_SETTINGS = ("QUAID_", "OPENAI_", "OLLAMA_")
_SHARED_OPTIONS = frozenset({"--vault", "--json", "-q", "--quiet"})
_OF_CALLS = frozenset({SWITCH, NO_HOOKS, "QUAID_HOME", "QUAID_MCP_TOKEN"})
"""Variables of one call or one server, which change no answer."""

OUT, ERR, RAW, EXIT, GIVEN = 1, 2, 3, 4, 5
Answer = list[tuple[int, bytes]]
"""The output, in order: (`OUT` or `ERR`, UTF-8) as text, (`RAW`, bytes) as bytes to stdout, and last (`EXIT`, the exit
code). (`GIVEN`, path NUL line): the caller appends the line to the file once all output is printed. Only the caller
knows that it was, and that it did not run the command itself.
"""


class DeclinedError(BaseException):
    """The call is for its caller alone. Not an `Exception`: no handler of ordinary failures may catch it."""


class Call:
    """A command line, and the properties of its process that shape the answer."""

    def __init__(self, root: str, arguments: Sequence[str], stdin: bytes = b"", cwd: str | None = None) -> None:
        self.root = root
        self.arguments = list(arguments)
        self.stdin = stdin
        self.cwd = os.getcwd() if cwd is None else cwd
        self.encoding = (sys.stdout.encoding or "") if sys.stdout else ""
        self.has_terminal = bool(sys.stdout) and sys.stdout.isatty()
        self.has_error_terminal = bool(sys.stderr) and sys.stderr.isatty()
        columns = os.environ.get("COLUMNS", "")
        self.columns = int(columns) if columns.isdecimal() else 0
        try:  # as `shutil.get_terminal_size` does, which takes too long to import
            self.columns = self.columns or os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
        except (OSError, ValueError, AttributeError):
            self.columns = 80
        self.environ = {name: os.environ[name] for name in _ENVIRON if name in os.environ}

    def pack(self, identity: str) -> bytes:
        """Return the call as bytes, for the process with this `identity`."""
        terminals = ["1" if each else "" for each in (self.has_terminal, self.has_error_terminal)]
        environ = [self.environ.get(name, "") for name in _ENVIRON]
        fields = [identity, self.cwd, self.encoding, *terminals, str(self.columns), *environ]
        fields += [str(len(self.arguments)), *self.arguments, ""]
        return "\0".join(fields).encode("utf-8", "surrogatepass") + self.stdin

    @classmethod
    def unpack(cls, root: str, data: bytes) -> tuple[str, Call]:
        """Return the identity of the addressed process, and the call. ValueError: it is not a call."""
        fixed = data.split(b"\0", 9)
        count = int(fixed[8]) if len(fixed) == 10 else -1
        rest = fixed[-1].split(b"\0", count) if 0 <= count < 1_000 else []
        if len(rest) != count + 1:
            raise ValueError("it is no call")
        identity, cwd, encoding, out, err, columns, no_color, term, _ = (_text(field) for field in fixed[:9])
        call = cls(root, [_text(argument) for argument in rest[:-1]], rest[-1], cwd)
        call.encoding = encoding
        call.has_terminal, call.has_error_terminal, call.columns = bool(out), bool(err), int(columns)
        call.environ = {"NO_COLOR": no_color, "TERM": term}
        return identity, call

    def ask(self) -> Answer | None:
        """Return the answer of the process that listens for this vault; None if none answers in time."""
        try:
            identity = identity_of(self.root)
            path = socket_path(identity)
            if len(self.stdin) > MAX_SENT or not is_private(os.path.dirname(path)):
                return None
            data = self.pack(identity)
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        except (OSError, AttributeError):  # no process ever listened; or this system has no such sockets
            return None
        try:
            connection.settimeout(ANSWER_S)
            connection.connect(path)
            if not is_own_peer(connection):
                return None
            connection.sendall(data)
            connection.shutdown(_socket.SHUT_WR)
            received = []
            while part := connection.recv(262_144):
                received.append(part)
        except OSError:
            return None
        finally:
            connection.close()
        return unpack_answer(b"".join(received))


def of_this_process(arguments: Sequence[str]) -> Call | None:
    """Return this process as a call that another one may answer; None if it is not of that kind."""
    if os.environ.get(SWITCH, "").lower() == "off" or not (sys.stdin and sys.stdout and sys.stderr) or not arguments:
        return None
    is_hook = arguments[0] == "hook" and event_name(arguments[1:]) in EVENTS and not os.environ.get(NO_HOOKS)
    if (not is_hook and arguments[0] not in COMMANDS) or "-h" in arguments or "--help" in arguments:
        return None
    vaults = named_vaults(arguments)
    if len(vaults) > 1:  # the listening process has one memory open
        return None
    try:
        stdin = read_input() if is_hook else b""
        named = "".join(vaults) or os.environ.get("QUAID_HOME")
        start = ""
        if is_hook and not named:
            import json

            try:
                event = json.loads(stdin)
            except ValueError:
                event = None
            folder = event.get("cwd") if isinstance(event, dict) else None
            start = folder if isinstance(folder, str) and folder.startswith("/") else ""
        start = start or os.getcwd()
        root = os.path.expanduser(named) if named else find_vault_path(start) or os.path.expanduser("~/quaid")
        return Call(os.path.abspath(root), arguments, stdin)
    except OSError:  # the working folder is gone
        return None


def event_name(arguments: Sequence[str]) -> str:
    """Return the event of a `quaid hook`: `SessionStart`, as Claude Code calls it, is `session-start`."""
    letters = (f"-{letter.lower()}" if letter.isupper() else letter for letter in "".join(arguments[:1]))
    return "".join(letters).strip("-")


def read_input() -> bytes:
    """Return the event on stdin."""
    return b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT)


def show(answer: Answer) -> int:
    """Print an answer and return its exit code. OSError: nobody reads any more, or the disk is full."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # as the command line does
    for kind, data in answer[:-1]:
        if kind == RAW:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        elif kind != GIVEN:
            (sys.stdout if kind == OUT else sys.stderr).write(data.decode("utf-8", "surrogatepass"))
    sys.stdout.flush()
    for path, line in (data.split(b"\0") for kind, data in answer if kind == GIVEN):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.write(handle, line + b"\n")
        os.close(handle)
    return int(answer[-1][1])


def pack_answer(answer: Answer) -> bytes:
    """Return the answer as bytes: the kind of each part, its length in four bytes, and its content."""
    return b"".join(bytes([kind]) + len(data).to_bytes(4, "big") + data for kind, data in answer)


def unpack_answer(data: bytes) -> Answer | None:
    """Parse an answer; None if it does not end with an exit code."""
    answer, start = [], 0
    while len(data) >= start + 5:
        end = start + 5 + int.from_bytes(data[start + 1 : start + 5], "big")
        answer.append((data[start], data[start + 5 : end]))
        start = end
    return answer if start == len(data) and answer and answer[-1][0] == EXIT else None


def identity_of(root: str | os.PathLike[str]) -> str:
    """Return what caller and listening process must share: vault, installation, settings, environment."""
    environ = (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(_SETTINGS))
    shared = (setting for setting in environ if setting.partition("=")[0] not in _OF_CALLS)
    return "\n".join([os.path.realpath(root), sys.prefix, config_path(), os.uname().nodename, *shared])


def socket_path(identity: str) -> str:
    """Return the path of the socket for an identity, outside of the vault, which may be on a disk without sockets.

    Raises:
        OSError: it would be too long.
    """
    # Two identities may share a name: the listening process compares the whole identity.
    path = os.path.join(state_path(), RUN_DIR, f"{zlib.crc32(identity.encode('utf-8', 'surrogateescape')):08x}.sock")
    if len(os.fsencode(path)) > _MAX_PATH:
        raise OSError(path)
    return path


def is_private(folder: str) -> bool:
    """Return whether no other user can write to the folder. OSError: there is none."""
    about = os.lstat(folder)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def is_own_peer(connection: _socket.socket) -> bool:
    """Return whether the process at the other end belongs to this user, as far as the system reports it."""
    if not hasattr(_socket, "SO_PEERCRED"):
        return True
    peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid and gid as C has them
    return int.from_bytes(peer[4:8], sys.byteorder) == os.geteuid()


def put_command_first(arguments: list[str]) -> list[str]:
    """Return the same command line with shared options moved behind the name of the command."""
    place = 0
    while arguments[place : place + 1] and arguments[place].partition("=")[0] in _SHARED_OPTIONS:
        place += 2 if arguments[place] == "--vault" else 1
    end = place + (2 if arguments[place : place + 1] == ["hook"] else 1)  # the event is a part of the name
    return [*arguments[place:end], *arguments[:place], *arguments[end:]]


def named_vaults(arguments: Sequence[str]) -> list[str]:
    """Return the vaults in a command line."""
    named = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--vault" and number + 1 < len(arguments):
            named.append(arguments[number + 1])
        elif argument.startswith("--vault="):
            named.append(argument.removeprefix("--vault="))
    return named


def _text(field: bytes) -> str:
    return field.decode("utf-8", "surrogatepass")

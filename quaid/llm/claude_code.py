"""Claude Code as a process, `claude -p`: for users who have a subscription and no key.

It starts in half a second and calls its model twice for one structured answer, so it is for work that can wait.
"""

import atexit
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress

from quaid.errors import ModelAnswerError, ModelTimeoutError, ModelUnavailableError
from quaid.llm.exchange import Reply, Request, Stop, read_cost, read_count
from quaid.llm.providers import read_anthropic_usage
from quaid.llm.schema import without_limits
from quaid.redaction import admit

NO_HOOKS = "QUAID_NO_HOOKS"
"""Set for the process: Quaid's own hooks, which it loads, end at once when it is set."""
_OPTIONS = (
    *("--output-format", "json"),
    *("--tools", ""),
    "--no-session-persistence",
    "--strict-mcp-config",
    *("--settings", '{"disableAllHooks":true}'),
)
_STOPS: dict[str, Stop] = {"max_tokens": "length", "refusal": "refusal"}
_REAP_S = 5.0

_running: set[subprocess.Popen[bytes]] = set()


class ClaudeCodeProvider:
    """`claude -p`, the prompt on its standard input."""

    name = "claude-code"
    min_s = 5.0
    turns_per_call = 2
    is_local = False
    goes_to = "Anthropic, through Claude Code"

    def __init__(self, executable: str, environ: Mapping[str, str]) -> None:
        self._executable = executable
        # Claude Code refuses to start inside itself when this is set; our process is not a session of it.
        inherited = {name: value for name, value in environ.items() if name != "CLAUDECODE"}
        self._environ = inherited | {NO_HOOKS: "1", "CLAUDE_CODE_MAX_RETRIES": "1"}

    def complete(self, request: Request, deadline: float) -> Reply:
        """Return the model's answer.

        Raises:
            ModelUnavailableError, ModelTimeoutError, ModelAnswerError: as for `Provider.complete`.
        """
        output, errors, code = self._run(request, deadline)
        try:
            found = json.loads(output)
        except (ValueError, RecursionError):
            found = None
        messages = found if isinstance(found, list) else [found]  # the result is alone, or the last of a list
        results = [item for item in messages if isinstance(item, dict) and item.get("type") == "result"]
        if not results:
            reason = " ".join(errors.split())[:200] or f"exit code {code}"
            raise ModelUnavailableError(f"claude -p gave no result ({reason})", "Try it in a shell: claude -p hello")
        result = results[-1]
        # A failed request can have the subtype "success": only is_error is reliable.
        if result.get("is_error"):
            status, kind = result.get("api_error_status"), str(result.get("subtype"))
            if kind == "error_max_structured_output_retries":
                problem = "claude -p got no answer that fits the schema"
                raise ModelAnswerError(request.model, request.prompt, problem)
            told = result.get("errors")
            words = result.get("result") or (told[0] if isinstance(told, list) and told else kind)
            message = f"{status}: " * bool(status) + " ".join(str(words).split())[:200]
            if status in {401, 403}:
                raise ModelUnavailableError(f"claude -p is not logged in ({message})", "Log in with: claude")
            raise ModelUnavailableError(f"claude -p got no answer ({message})", "Try again later")
        structured = result.get("structured_output")
        text = json.dumps(structured) if isinstance(structured, dict) else str(result.get("result") or "")
        try:
            usage = read_anthropic_usage(result.get("usage") or {}, read_cost(result.get("total_cost_usd")))
            # The model that wrote the most: small ones do side jobs.
            models = result.get("modelUsage") or {}
            model = max(models, key=lambda name: read_count(models[name].get("outputTokens")), default=request.model)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelAnswerError(request.model, request.prompt, "claude -p speaks another format") from error
        return Reply(text, _STOPS.get(str(result.get("stop_reason")), "end"), model, usage)

    def _run(self, request: Request, deadline: float) -> tuple[bytes, str, int]:
        """Return the output, the errors and the exit code of the process. It never outlives `deadline`."""
        from tempfile import TemporaryDirectory

        system = admit(request.instructions, keep_lines=True).text
        command = [self._executable, "-p", *_OPTIONS, "--model", request.model, "--system-prompt", system]
        command += ["--json-schema", json.dumps(without_limits(request.schema, is_strict=False))]
        # The process takes a single question, so all turns go in one text.
        (_, first), *later = request.turns
        parts = [f"Your answer was:\n{text}" if role == "assistant" else text for role, text in later]
        question = admit("\n\n".join([first, *parts]), keep_lines=True).text
        limit_s = max(0.1, deadline - time.monotonic())
        # An empty folder: no CLAUDE.md and no state of a repository goes along.
        with TemporaryDirectory(prefix="quaid-claude-") as folder:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env=dict(self._environ),
                    start_new_session=True,
                )
            except OSError as error:
                raise ModelUnavailableError(f"claude could not be started ({error.strerror})") from error
            _running.add(process)
            try:
                output, errors = process.communicate(question.encode("utf-8", "replace"), timeout=limit_s)
            except subprocess.TimeoutExpired as error:
                raise ModelTimeoutError(f"claude -p ({request.model})", round(limit_s, 1)) from error
            finally:
                _kill(process)
                _running.discard(process)
        return output, errors.decode("utf-8", "replace"), process.returncode


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started. It has a session of its own, so that Ctrl-C does not reach it."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)


@atexit.register
def kill_all() -> None:
    """End every such process: for callers that exit without `atexit`."""
    for process in tuple(_running):
        _kill(process)

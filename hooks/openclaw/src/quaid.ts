/** The `quaid` executable, which is all of Quaid that this plugin knows. No shell, a hard limit on time, and no surprises:
 * what goes wrong is an answer.
 */

import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";

import type { Settings } from "./settings.ts";

const LONGEST_OUTPUT = 16 * 1024 * 1024;
const LONGEST_PROBLEM = 500;

export interface Call {
  readonly args: readonly string[];
  readonly timeoutMs: number;
  readonly input?: string;
  /** Where Quaid looks for a vault; a folder that is not there counts as not given. */
  readonly cwd?: string | undefined;
}

export interface Answer {
  readonly out: string;
  /** A sentence for the owner, or null when Quaid has done what it was asked. */
  readonly problem: string | null;
}

export type Ask = (call: Call) => Promise<Answer>;

/** A way to run the executable and use the vault that the settings name. Its promises never reject. */
export function makeAsk(settings: Pick<Settings, "command" | "vault">): Ask {
  const vault = settings.vault === undefined ? [] : [`--vault=${settings.vault}`];
  return async (call) => {
    const cwd = await existingFolder(call.cwd);
    try {
      return await run(settings.command, { ...call, args: [...vault, ...call.args] }, cwd);
    } catch (error) {
      return { out: "", problem: `Quaid could not be started: ${String(error)}` };
    }
  };
}

function run(command: string, call: Call, cwd: string | undefined): Promise<Answer> {
  return new Promise((resolve) => {
    const options = {
      timeout: call.timeoutMs,
      killSignal: "SIGKILL",
      maxBuffer: LONGEST_OUTPUT,
      windowsHide: true,
      ...(cwd === undefined ? {} : { cwd }),
    } as const;
    // No argument of a process may hold a NUL.
    const args = call.args.map((arg) => arg.replaceAll("\0", " "));
    const child = execFile(command, args, options, (error, out, talk) => {
      resolve({ out, problem: error ? describe(error, command, call.timeoutMs, out, talk) : hookProblem(talk) });
    });
    // A process that leaves without reading is told of by its exit code.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(call.input ?? "");
  });
}

interface Failure extends Error {
  readonly code?: string | number | null;
  readonly killed?: boolean;
}

function describe(error: Failure, command: string, timeoutMs: number, out: string, talk: string): string {
  if (error.code === "ENOENT" || error.code === "EACCES") {
    return (
      `The command ${command} cannot be run. Install Quaid, or name it whole: ` +
      "openclaw config set plugins.entries.quaid.config.command /path/to/quaid"
    );
  }
  if (error.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") {
    return "Quaid answered more than can be read.";
  }
  if (error.killed) {
    return `Quaid took longer than ${timeoutMs / 1000} s and was stopped.`;
  }
  const said = ownWords(out) ?? talk.trim().split("\n").at(-1)?.replace(/^quaid: /, "") ?? "";
  return (said || `Quaid left with ${error.code ?? "a signal"}.`).slice(0, LONGEST_PROBLEM);
}

/** What a hook says went wrong: it leaves with 0 whatever happens. */
function hookProblem(talk: string): string | null {
  return /^quaid: hook [\w-]+: (.+)$/m.exec(talk)?.[1]?.slice(0, LONGEST_PROBLEM) ?? null;
}

/** The sentence in Quaid's error object. */
function ownWords(out: string): string | undefined {
  try {
    const said: unknown = JSON.parse(out)?.error?.message;
    return typeof said === "string" && said ? said : undefined;
  } catch {
    return undefined;
  }
}

async function existingFolder(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) {
    return undefined;
  }
  return (await stat(path).catch(() => null))?.isDirectory() ? path : undefined;
}

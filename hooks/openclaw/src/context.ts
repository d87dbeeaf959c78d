/** What an agent is given before it speaks: with a session what it should know from the start, with a prompt what the
 * memory says to it.
 *
 * OpenClaw adds this to one model call and keeps none of it, so what belongs to the session is given with each of its
 * prompts. It goes to the system prompt, where it stays the same from turn to turn and the provider's cache holds it.
 */

import type { Ask } from "./quaid.ts";
import type { Settings } from "./settings.ts";

export const LONGEST_TEXT = 8_000;
const MOST_SESSIONS = 500;

export interface Prompt {
  readonly session: string;
  readonly cwd: string | undefined;
  readonly text: string;
  /** Whether something was said in the session before. */
  readonly hasHistory: boolean;
}

interface Begun {
  readonly source: string | undefined;
  /** What it was given; undefined when it has not been asked for. */
  text?: Promise<string | null>;
}

export class Context {
  readonly #ask: Ask;
  readonly #settings: Settings;
  readonly #tell: (problem: string) => void;
  readonly #sessions = new Map<string, Begun>();

  constructor(ask: Ask, settings: Settings, tell: (problem: string) => void) {
    this.#ask = ask;
    this.#settings = settings;
    this.#tell = tell;
  }

  /** What is added to the prompt, or undefined when there is nothing to add. */
  async before(prompt: Prompt): Promise<{ appendSystemContext?: string; prependContext?: string } | undefined> {
    const [known, recalled] = await Promise.all([this.#beginning(prompt), this.#recalled(prompt)]);
    return known || recalled
      ? { ...(known ? { appendSystemContext: known } : {}), ...(recalled ? { prependContext: recalled } : {}) }
      : undefined;
  }

  /** The session has lost what it knew, or is the heir of one: it begins again, for the reason `source`. */
  beginAgain(session: string, source: "compact" | "clear"): void {
    this.#remember(session, { source });
  }

  end(session: string): void {
    this.#sessions.delete(session);
  }

  async #beginning({ session, cwd, hasHistory }: Prompt): Promise<string | null> {
    const begun = this.#sessions.get(session) ?? { source: undefined };
    this.#remember(session, begun);
    const source = begun.source ?? (hasHistory ? "resume" : "startup");
    begun.text ??= this.#text("session-start", { session_id: session, cwd, source, host: "openclaw" }, cwd);
    const text = await begun.text;
    if (text === null) {
      delete begun.text; // it could not be had; the next prompt asks again
    }
    return text;
  }

  async #recalled({ session, cwd, text }: Prompt): Promise<string | null> {
    const { recall } = this.#settings;
    if (recall === "off") {
      return null;
    }
    const env = recall === undefined ? {} : { QUAID_HOOKS_RECALL: recall };
    return this.#text("user-prompt-submit", { session_id: session, cwd, prompt: text, host: "openclaw" }, cwd, env);
  }

  /** What `quaid hook` has to say, possibly nothing; null when it could not be asked or said too much. */
  async #text(
    event: string,
    input: Readonly<Record<string, string | undefined>>,
    cwd: string | undefined,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string | null> {
    const timeoutMs = this.#settings.promptTimeoutMs;
    const { out, problem } = await this.#ask({
      args: ["hook", event, "--text"],
      input: JSON.stringify(input),
      timeoutMs,
      cwd,
      env,
    });
    const text = out.trim();
    if (problem !== null || text.length > LONGEST_TEXT) {
      this.#tell(`nothing from memory with this prompt: ${problem ?? `${event} said more than ${LONGEST_TEXT} characters`}`);
      return null;
    }
    return text;
  }

  #remember(session: string, begun: Begun): void {
    this.#sessions.delete(session);
    this.#sessions.set(session, begun);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST_SESSIONS && oldest !== undefined) {
      this.#sessions.delete(oldest);
    }
  }
}

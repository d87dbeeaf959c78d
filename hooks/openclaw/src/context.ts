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
}

type Source = "startup" | "compact" | "clear";

interface Begun {
  readonly source: Source;
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
    const [known, recalled] = await Promise.all([this.#beginning(prompt.session, prompt.cwd), this.#recalled(prompt)]);
    return known || recalled
      ? { ...(known ? { appendSystemContext: known } : {}), ...(recalled ? { prependContext: recalled } : {}) }
      : undefined;
  }

  /** The session has lost what it knew, or is the heir of one: it begins again. Where its folder is known, what it should
   * know is asked for at once, so that its next prompt need not wait.
   */
  beginAgain(session: string, source: Exclude<Source, "startup">, cwd?: string): void {
    this.#remember(session, { source });
    if (cwd !== undefined) {
      void this.#beginning(session, cwd);
    }
  }

  end(session: string): void {
    this.#sessions.delete(session);
  }

  async #beginning(session: string, cwd: string | undefined): Promise<string | null> {
    // Also one that was there before this process: nothing that it was given is left.
    const begun: Begun = this.#sessions.get(session) ?? { source: "startup" };
    this.#remember(session, begun);
    const { source } = begun;
    begun.text ??= this.#text("session-start", { session_id: session, cwd, source, host: "openclaw" }, cwd);
    const text = await begun.text;
    if (text === null) {
      delete begun.text; // it could not be had; the next prompt asks again
    }
    return text;
  }

  async #recalled({ session, cwd, text }: Prompt): Promise<string | null> {
    const input = { session_id: session, cwd, prompt: text, host: "openclaw" };
    return this.#settings.recall ? this.#text("user-prompt-submit", input, cwd) : null;
  }

  /** What `quaid hook` has to say, possibly nothing; null when it could not be asked or said too much. */
  async #text(
    event: string,
    input: Readonly<Record<string, string | undefined>>,
    cwd: string | undefined,
  ): Promise<string | null> {
    const call = { args: ["hook", event, "--text"], input: JSON.stringify(input), cwd };
    const { out, problem } = await this.#ask({ ...call, timeoutMs: this.#settings.promptTimeoutMs });
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

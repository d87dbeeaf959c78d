/** Handing conversations over to Quaid, which learns from them on its own time: when one is compacted, is reset, ends,
 * or has been silent for a while; and after a restart those that were left.
 */

import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";

import { listSaid, type Said } from "./conversation.ts";
import type { Ask } from "./quaid.ts";
import type { Settings } from "./settings.ts";
import { grow, type Unextracted } from "./unextracted.ts";

export type Occasion = "pre-compact" | "session-end";

export interface HandOver {
  readonly session: string;
  readonly cwd?: string | undefined;
  /** Why, in the host's word: reset, idle, daily … */
  readonly source?: string | undefined;
  /** What the host says the conversation was; it may say nothing. */
  readonly messages?: unknown;
  readonly transcript?: string | undefined;
}

type Tell = (problem: string) => void;

export class Extraction {
  readonly #ask: Ask;
  readonly #settings: Settings;
  readonly #unextracted: Unextracted;
  readonly #tell: Tell;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(ask: Ask, settings: Settings, unextracted: Unextracted, tell: Tell) {
    this.#ask = ask;
    this.#settings = settings;
    this.#unextracted = unextracted;
    this.#tell = tell;
  }

  /** A turn has ended with these messages: keep them, and learn from them when nobody says more for a while. */
  async turnEnded(session: string, cwd: string | undefined, messages: unknown): Promise<void> {
    this.#disarm(session);
    await this.#inTurn(session, async () => {
      const before = (await this.#unextracted.find(session))?.kept.messages ?? [];
      const said = grow(before, listSaid(messages));
      if (said.length) {
        await this.#unextracted.keep({ session, cwd, messages: said });
      }
    });
    this.#arm(session);
  }

  /** Give Quaid the conversation as the host tells it, else as it was kept. It stays kept when that fails. */
  async handOver(occasion: Occasion, given: HandOver): Promise<void> {
    this.#disarm(given.session);
    await this.#inTurn(given.session, async () => {
      const found = await this.#unextracted.find(given.session);
      const said = grow(found?.kept.messages ?? [], listSaid(given.messages));
      const transcript = said.length ? undefined : await existingFile(given.transcript);
      if (!said.length && transcript === undefined) {
        return;
      }
      const isTaken = await this.#give(occasion, given, found?.kept.cwd, said, transcript);
      if (isTaken && found) {
        await this.#unextracted.remove(found);
      }
    });
  }

  /** Do not learn from what was kept of a conversation: its owner has deleted it. */
  async forget(session: string): Promise<void> {
    this.#disarm(session);
    await this.#inTurn(session, async () => {
      const found = await this.#unextracted.find(session);
      if (found) {
        await this.#unextracted.remove(found);
      }
    });
  }

  /** Hand over what a gateway left behind that was stopped or killed; one after the other, until `signal` says no. */
  async recover(signal?: AbortSignal): Promise<void> {
    for (const { kept } of await this.#unextracted.list()) {
      if (signal?.aborted) {
        return;
      }
      await this.handOver("session-end", { session: kept.session, cwd: kept.cwd, source: "restart" });
    }
  }

  /** Let go of all timers; what they waited for is kept for the next start. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#timers.forEach((timer) => clearTimeout(timer));
    this.#timers.clear();
    await Promise.all(this.#underWay.values());
  }

  async #give(
    occasion: Occasion,
    given: HandOver,
    keptCwd: string | undefined,
    messages: readonly Said[],
    transcript: string | undefined,
  ): Promise<boolean> {
    const cwd = given.cwd ?? keptCwd;
    const { problem } = await this.#ask({
      args: ["hook", occasion],
      cwd,
      timeoutMs: this.#settings.handOverTimeoutMs,
      input: JSON.stringify({
        session_id: given.session,
        cwd,
        host: "openclaw",
        source: given.source,
        ...(transcript === undefined ? { messages } : { transcript_path: transcript }),
      }),
    });
    if (problem !== null) {
      this.#tell(`a conversation could not be handed over and is kept: ${problem}`);
    }
    return problem === null;
  }

  #arm(session: string): void {
    if (this.#settings.idleMinutes > 0) {
      const silence = () => void this.handOver("session-end", { session, source: "idle" });
      this.#timers.set(session, setTimeout(silence, this.#settings.idleMinutes * 60_000).unref());
    }
  }

  #disarm(session: string): void {
    clearTimeout(this.#timers.get(session));
    this.#timers.delete(session);
  }

  /** One thing at a time for each session: a reset and its end arrive together. What fails is told, never thrown. */
  async #inTurn(session: string, work: () => Promise<void>): Promise<void> {
    const before = this.#underWay.get(session);
    const mine = (async () => {
      await before;
      await work();
    })().catch((error: unknown) => this.#tell(String(error)));
    this.#underWay.set(session, mine);
    await mine;
    if (this.#underWay.get(session) === mine) {
      this.#underWay.delete(session);
    }
  }
}

/** The path, if a file is there. What OpenClaw calls a session file is a name for rows of its database by now. */
async function existingFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined || !isAbsolute(path)) {
    return undefined;
  }
  return (await stat(path).catch(() => null))?.isFile() ? path : undefined;
}

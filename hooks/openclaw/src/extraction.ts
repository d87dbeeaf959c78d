/** Handing conversations over to Quaid, which learns from them on its own time: when one is compacted, is reset, ends,
 * or has been silent for a while; and after a restart those that were left.
 */

import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";

import { listSaid } from "./conversation.ts";
import { type Conversation, grow, type KeptConversations } from "./kept.ts";
import type { Ask } from "./quaid.ts";
import type { Settings } from "./settings.ts";

export type Occasion = "pre-compact" | "session-end";

const FORGOTTEN_AFTER_MS = 30 * 86_400_000;

export interface HandOver {
  readonly session: string;
  readonly cwd?: string | undefined;
  /** Why, in the host's word: reset, idle, daily … */
  readonly source?: string | undefined;
  /** What the host says the conversation was; it may say nothing. */
  readonly messages?: unknown;
  readonly transcript?: string | undefined;
  /** Whether nothing more will be said under this name. */
  readonly isOver?: boolean;
}

type Tell = (problem: string) => void;

export class Extraction {
  readonly #ask: Ask;
  readonly #settings: Settings;
  readonly #kept: KeptConversations;
  readonly #tell: Tell;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(ask: Ask, settings: Settings, kept: KeptConversations, tell: Tell) {
    this.#ask = ask;
    this.#settings = settings;
    this.#kept = kept;
    this.#tell = tell;
  }

  /** A turn has ended with these messages: keep them, and learn from them when nobody says more for a while. */
  async turnEnded(session: string, cwd: string | undefined, messages: unknown): Promise<void> {
    this.#disarm(session);
    await this.#inTurn(session, async () => {
      const before = (await this.#kept.find(session))?.conversation ?? anew(session);
      const said = grow(before.messages, listSaid(messages));
      if (said.length > before.messages.length) {
        await this.#kept.keep({ ...before, cwd, messages: said });
      }
    });
    this.#arm(session);
  }

  /** Give Quaid the conversation, with what the host tells of it, if there is anything that it has not got. What it could
   * not take stays for the next occasion.
   */
  async handOver(occasion: Occasion, given: HandOver): Promise<void> {
    const { session } = given;
    this.#disarm(session);
    await this.#inTurn(session, async () => {
      const found = await this.#kept.find(session);
      const before = found?.conversation ?? anew(session);
      const said = grow(before.messages, listSaid(given.messages));
      const now = { ...before, cwd: given.cwd ?? before.cwd, messages: said };
      const transcript = said.length ? undefined : await existingFile(given.transcript);
      const isTaken =
        transcript !== undefined || said.length > before.handedOver
          ? await this.#give(occasion, given.source, now, transcript)
          : true;
      // Another gateway may have added to it meanwhile; then there is something to hand over still.
      if (!(await this.#kept.isAsFound(session, found))) {
        return;
      }
      if (isTaken && given.isOver) {
        await this.#kept.remove(session);
      } else if (said.length) {
        await this.#kept.keep({ ...now, handedOver: isTaken ? said.length : before.handedOver });
      }
    });
  }

  /** Do not learn from what was kept of a conversation: its owner has deleted it. */
  async forget(session: string): Promise<void> {
    this.#disarm(session);
    await this.#inTurn(session, () => this.#kept.remove(session));
  }

  /** Hand over what a gateway left behind that was stopped or killed; one after the other, until `signal` says no. */
  async recover(signal?: AbortSignal, now: Date = new Date()): Promise<void> {
    for (const { conversation, at } of await this.#kept.list()) {
      const { session, messages, handedOver } = conversation;
      if (signal?.aborted) {
        return;
      }
      if (messages.length > handedOver) {
        await this.handOver("session-end", { session, source: "restart" });
      } else if (now.getTime() - at.getTime() > FORGOTTEN_AFTER_MS) {
        await this.forget(session);
      }
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
    source: string | undefined,
    { session, cwd, messages }: Conversation,
    transcript: string | undefined,
  ): Promise<boolean> {
    const what = transcript === undefined ? { messages } : { transcript_path: transcript };
    const { problem } = await this.#ask({
      args: ["hook", occasion],
      input: JSON.stringify({ session_id: session, cwd, host: "openclaw", source, ...what }),
      timeoutMs: this.#settings.handOverTimeoutMs,
      cwd,
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

function anew(session: string): Conversation {
  return { session, cwd: undefined, messages: [], handedOver: 0 };
}

/** The path, if a file is there. What OpenClaw calls a session file is a name for rows of its database by now. */
async function existingFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined || !isAbsolute(path)) {
    return undefined;
  }
  return (await stat(path).catch(() => null))?.isFile() ? path : undefined;
}

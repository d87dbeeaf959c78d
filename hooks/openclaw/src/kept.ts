/** Conversations as they were told turn by turn, a file each, so that they outlive the gateway.
 *
 * OpenClaw keeps sessions in a database of its own, tells of a compaction without the messages, and goes on under the same
 * session id after a reset or a compaction with only what is left. Quaid knows a session by how it began; so what was said
 * in one is only ever added to here. Several gateways may share the folder: every file is written aside and renamed.
 */

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { isObject, listSaid, type Said } from "./conversation.ts";

const LONGEST = 2_000_000;
const FEWEST_SHARED = 2;

export interface Conversation {
  readonly session: string;
  readonly cwd: string | undefined;
  readonly messages: readonly Said[];
  /** So many of the messages Quaid has been given. */
  readonly handedOver: number;
}

/** A conversation, the text of its file, and when that was written. */
export interface Found {
  readonly conversation: Conversation;
  readonly text: string;
  readonly at: Date;
}

/** `before` with what `seen` has beyond it. The two overlap: `seen` may begin earlier, later or where `before` does, and
 * goes on after its end; or it was rewound and goes another way. Nothing in common means that all of it is new.
 */
export function grow(before: readonly Said[], seen: readonly Said[]): readonly Said[] {
  return [...before, ...seen.slice(countToEnd(before, seen) || countToFork(before, seen))];
}

/** How many messages of `seen` lead to the end of `before`: up to where most of what stands before it is the same. */
function countToEnd(before: readonly Said[], seen: readonly Said[]): number {
  let [longest, count] = [0, 0];
  for (let end = 1; end <= seen.length; end += 1) {
    let run = 0;
    while (run < before.length && run < end && isSame(before[before.length - 1 - run], seen[end - 1 - run])) {
      run += 1;
    }
    const isWhole = run === before.length || run === end;
    if (run > longest && (isWhole || run >= FEWEST_SHARED)) {
      [longest, count] = [run, end];
    }
  }
  return count;
}

/** How many messages `seen` begins with that stand in `before` too; a single one may be chance. */
function countToFork(before: readonly Said[], seen: readonly Said[]): number {
  let longest = 0;
  for (let place = 0; place < before.length; place += 1) {
    let run = 0;
    while (place + run < before.length && run < seen.length && isSame(before[place + run], seen[run])) {
      run += 1;
    }
    longest = Math.max(longest, run);
  }
  return longest >= FEWEST_SHARED ? longest : 0;
}

/** Times do not count: the host tells them in two ways. */
function isSame(one: Said | undefined, other: Said | undefined): boolean {
  return one?.role === other?.role && one?.content === other?.content;
}

/** `conversation` without the oldest of what was handed over, where it is longer than `longest` characters. */
export function trim(conversation: Conversation, longest: number = LONGEST): Conversation {
  let length = conversation.messages.reduce((sum, said) => sum + said.content.length, 0);
  let dropped = 0;
  while (length > longest && dropped < conversation.handedOver) {
    length -= conversation.messages[dropped]?.content.length ?? 0;
    dropped += 1;
  }
  const handedOver = conversation.handedOver - dropped;
  return { ...conversation, messages: conversation.messages.slice(dropped), handedOver };
}

export function encode({ session, cwd, messages, handedOver }: Conversation): string {
  return JSON.stringify({ v: 1, session, cwd, handedOver, messages });
}

/** The conversation in a file's text, or null for what this plugin has not written, or wrote half. */
export function decode(text: string): Conversation | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value["v"] !== 1 || typeof value["session"] !== "string") {
    return null;
  }
  const { session, cwd, handedOver } = value;
  const messages = listSaid(value["messages"]);
  const isCount = typeof handedOver === "number" && Number.isInteger(handedOver) && handedOver >= 0;
  return session && messages.length && isCount && handedOver <= messages.length
    ? { session, cwd: typeof cwd === "string" ? cwd : undefined, messages, handedOver }
    : null;
}

export class KeptConversations {
  readonly #folder: () => string;

  /** `folder` is asked for when it is first needed: registering a plugin touches nothing. */
  constructor(folder: () => string) {
    this.#folder = folder;
  }

  async keep(conversation: Conversation): Promise<void> {
    const path = this.#path(conversation.session);
    const aside = `${path}.${process.pid}.new`;
    await mkdir(this.#folder(), { recursive: true, mode: 0o700 });
    await writeFile(aside, encode(trim(conversation)), { mode: 0o600 });
    await rename(aside, path);
  }

  async find(session: string): Promise<Found | null> {
    const found = await this.#read(this.#path(session));
    return found?.conversation.session === session ? found : null;
  }

  /** All there are. What cannot be read is left where it is. */
  async list(): Promise<Found[]> {
    const names = await readdir(this.#folder()).catch(() => []);
    const paths = names.filter((name) => name.endsWith(".json")).map((name) => join(this.#folder(), name));
    return (await Promise.all(paths.map((path) => this.#read(path)))).filter((found) => found !== null);
  }

  /** Whether the file still says what it said when it was `found`; null when there was none. */
  async isAsFound(session: string, found: Found | null): Promise<boolean> {
    return ((await this.find(session))?.text ?? null) === (found?.text ?? null);
  }

  async remove(session: string): Promise<void> {
    await rm(this.#path(session), { force: true });
  }

  async #read(path: string): Promise<Found | null> {
    try {
      const [text, { mtime: at }] = await Promise.all([readFile(path, "utf8"), stat(path)]);
      const conversation = decode(text);
      return conversation && { conversation, text, at };
    } catch {
      return null;
    }
  }

  #path(session: string): string {
    // A session is named by whoever started it: its name is no file name.
    return join(this.#folder(), `${createHash("sha256").update(session).digest("hex").slice(0, 32)}.json`);
  }
}

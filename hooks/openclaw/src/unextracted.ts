/** Conversations that Quaid has not been given yet: a file each, so that they outlive the gateway.
 *
 * OpenClaw keeps sessions in a database of its own and tells of a compaction without the messages, so what a turn ends
 * with is kept here until it is handed over. Several gateways may share the folder: every file is written whole and
 * renamed into place, and is only removed as it was read.
 */

import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { isObject, listSaid, type Said } from "./conversation.ts";

export interface Kept {
  readonly session: string;
  readonly cwd: string | undefined;
  readonly messages: readonly Said[];
}

/** A kept conversation and the bytes that it was read from. */
export interface Found {
  readonly kept: Kept;
  readonly text: string;
}

/** `kept` with what `seen` has beyond it. A turn ends with all of the conversation, which then begins as `kept` does, or
 * was rewound and goes another way; after a compaction it ends with the rest, which begins somewhere in `kept` or after.
 */
export function grow(kept: readonly Said[], seen: readonly Said[]): readonly Said[] {
  const start = kept.findIndex((_, place) => startsWith(seen, kept.slice(place)));
  if (start >= 0) {
    return [...kept, ...seen.slice(kept.length - start)];
  }
  const isRewound = kept.length > 0 && startsWith(seen, kept.slice(0, 1));
  return isRewound ? seen : [...kept, ...seen];
}

function startsWith(whole: readonly Said[], part: readonly Said[]): boolean {
  return (
    part.length <= whole.length &&
    part.every((said, place) => said.role === whole[place]?.role && said.content === whole[place]?.content)
  );
}

export function encode(kept: Kept): string {
  return JSON.stringify({ v: 1, session: kept.session, cwd: kept.cwd, messages: kept.messages });
}

/** The conversation in a file's text, or null for what no version of this plugin has written, or wrote half. */
export function decode(text: string): Kept | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value["v"] !== 1 || typeof value["session"] !== "string") {
    return null;
  }
  const messages = listSaid(value["messages"]);
  const cwd = typeof value["cwd"] === "string" ? value["cwd"] : undefined;
  return value["session"] && messages.length ? { session: value["session"], cwd, messages } : null;
}

export class Unextracted {
  readonly #folder: () => string;

  /** `folder` is asked for when it is first needed: registering a plugin touches nothing. */
  constructor(folder: () => string) {
    this.#folder = folder;
  }

  async keep(kept: Kept): Promise<void> {
    const path = this.#path(kept.session);
    const draft = `${path}.${process.pid}.new`;
    await mkdir(this.#folder(), { recursive: true, mode: 0o700 });
    await writeFile(draft, encode(kept), { mode: 0o600 });
    await rename(draft, path);
  }

  async find(session: string): Promise<Found | null> {
    const found = await this.#read(this.#path(session));
    return found?.kept.session === session ? found : null;
  }

  /** Every kept conversation. What cannot be read is left where it is. */
  async list(): Promise<Found[]> {
    const names = await readdir(this.#folder()).catch(() => []);
    const paths = names.filter((name) => name.endsWith(".json")).map((name) => join(this.#folder(), name));
    return (await Promise.all(paths.map((path) => this.#read(path)))).filter((found) => found !== null);
  }

  /** Forget the conversation, unless somebody has added to it since it was read. */
  async remove(found: Found): Promise<void> {
    const path = this.#path(found.kept.session);
    if ((await readFile(path, "utf8").catch(() => null)) === found.text) {
      await rm(path, { force: true });
    }
  }

  async #read(path: string): Promise<Found | null> {
    const text = await readFile(path, "utf8").catch(() => null);
    const kept = text === null ? null : decode(text);
    return text === null || kept === null ? null : { kept, text };
  }

  #path(session: string): string {
    // A session is named by whoever started it: its name is no file name.
    return join(this.#folder(), `${createHash("sha256").update(session).digest("hex").slice(0, 32)}.json`);
  }
}

/** What the tests stand on: a folder of their own, a quaid that writes down how it is called, a host that only listens. */

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

import type { AnyAgentTool, OpenClawPluginApi, OpenClawPluginToolContext } from "openclaw/plugin-sdk/plugin-entry";

import plugin from "../src/index.ts";

export const STAND_IN = join(import.meta.dirname, "stand-in.mjs");
export const SESSION = "5f0c2d1e";

export interface Call {
  args: string[];
  input: string;
  cwd: string;
}

type Reply = { out?: unknown; talk?: string; code?: number; afterMs?: number };

export class Ground {
  readonly folder: string;
  readonly state: string;

  constructor(test: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), "quaid-openclaw-"));
    this.state = join(this.folder, "state");
    chmodSync(STAND_IN, 0o755);
    process.env["STAND_IN"] = this.folder;
    this.reply({});
    test.after(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** What the stand-in says, by one of its arguments. */
  reply(replies: Record<string, Reply>): void {
    writeFileSync(join(this.folder, "replies.json"), JSON.stringify(replies));
  }

  /** How it was called since the last time this was asked, in order. */
  calls(): Call[] {
    const names = readdirSync(this.folder).filter((name) => name.startsWith("call-"));
    const calls = names.toSorted().map((name): Call => JSON.parse(readFileSync(join(this.folder, name), "utf8")));
    names.forEach((name) => rmSync(join(this.folder, name)));
    return calls;
  }

  /** The files of conversations. */
  kept(): string[] {
    const folder = join(this.state, "quaid", "conversations");
    try {
      return readdirSync(folder).map((name) => join(folder, name));
    } catch {
      return [];
    }
  }
}

/** So many messages of each conversation Quaid has not been given. */
export function waiting(ground: Ground): number[] {
  const kept = ground.kept().map((path) => JSON.parse(readFileSync(path, "utf8")));
  return kept.map(({ messages, handedOver }) => messages.length - handedOver);
}

type Handler = (event: never, place: never) => unknown;
type MakeTools = (place: OpenClawPluginToolContext) => unknown;

/** A host that has loaded the plugin. It calls what was registered, and nothing else. */
export class Host {
  readonly warnings: string[] = [];
  readonly #handlers = new Map<string, Handler>();
  readonly budgets = new Map<string, number | undefined>();
  #makeTools: MakeTools | undefined;

  constructor(ground: Ground, config: Record<string, unknown> = {}) {
    const api = {
      id: "quaid",
      name: "Quaid",
      source: "test",
      registrationMode: "full",
      config: {},
      pluginConfig: { command: STAND_IN, ...config },
      logger: {
        info: () => undefined,
        warn: (message) => void this.warnings.push(message),
        error: (message) => void this.warnings.push(message),
      },
      on: (name, handler, options) => {
        this.#handlers.set(name, handler as Handler);
        this.budgets.set(name, options?.timeoutMs);
      },
      registerTool: (tool) => {
        this.#makeTools = tool as MakeTools;
      },
    } satisfies Partial<OpenClawPluginApi>;
    const runtime = { state: { resolveStateDir: () => ground.state } };
    plugin.register?.({ ...api, runtime } as unknown as OpenClawPluginApi);
  }

  hooks(): string[] {
    return [...this.#handlers.keys()];
  }

  async fire(name: string, event: object, place: object = {}): Promise<unknown> {
    const here = { sessionId: SESSION, sessionKey: "agent:main:main", workspaceDir: "/nowhere", ...place };
    return this.#handlers.get(name)?.(event as never, here as never);
  }

  tools(place: Partial<OpenClawPluginToolContext> = {}): AnyAgentTool[] {
    const here = { sessionId: SESSION, sessionKey: "agent:main:main", ...place };
    return (this.#makeTools?.(here) ?? []) as AnyAgentTool[];
  }

  /** What the model reads when it calls the tool. */
  async use(name: string, params: object): Promise<string> {
    const tool = this.tools().find((known) => known.name === name);
    const result = await tool?.execute("call-1", params);
    return (result?.content ?? []).map((block) => (block.type === "text" ? block.text : "")).join("\n");
  }
}

export function user(content: unknown, more: object = {}): object {
  return { role: "user", content, timestamp: Date.UTC(2026, 10, 20, 14, 30), ...more };
}

export function assistant(content: unknown): object {
  return { role: "assistant", content, timestamp: Date.UTC(2026, 10, 20, 14, 31) };
}

/** Until `isSo`, for what goes on in the background; the test's own limit ends it otherwise. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

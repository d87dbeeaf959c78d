/** Quaid in OpenClaw. The memory slot is left to whoever has it: this plugin works by hooks and tools beside it. */

import { join } from "node:path";

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { Context } from "./context.ts";
import { isPersonal, isServed, nameSession, type Place } from "./conversation.ts";
import { Extraction } from "./extraction.ts";
import { KeptConversations } from "./kept.ts";
import { makeAsk } from "./quaid.ts";
import { readSettings } from "./settings.ts";
import { makeTools, toolsOf } from "./tools.ts";

/** What the host may wait beyond a limit of ours, so that ours is the one that counts. */
const GRACE_MS = 1_000;
/** Of which the session goes on under the same id when the gateway is back. */
const PAUSES = new Set(["shutdown", "restart"]);

export default definePluginEntry({
  id: "quaid",
  name: "Quaid",
  description: "A memory of markdown notes in git: recalled before a turn, learned from when a conversation pauses.",
  register(api) {
    const settings = readSettings(api.pluginConfig);
    const tell = (problem: string) => api.logger.warn(`quaid: ${problem}`);
    const ask = makeAsk(settings);
    const kept = new KeptConversations(() => join(api.runtime.state.resolveStateDir(), "quaid", "conversations"));
    const context = new Context(ask, settings, tell);
    const extraction = new Extraction(ask, settings, kept, tell);

    /** The session to learn from in this place, if it is one. */
    const recorded = (place: Place): string | undefined =>
      settings.extract && isServed(place, settings.groups) && isPersonal(place) ? nameSession(place) : undefined;

    api.on(
      "before_prompt_build",
      async (event, place) => {
        const session = nameSession(place);
        const text = (event.currentUserMessage ?? event.prompt).trim();
        if (session === undefined || !text || !isServed(place, settings.groups) || !isPersonal(place)) {
          return undefined;
        }
        return context.before({ session, cwd: place.workspaceDir, text });
      },
      { timeoutMs: settings.promptTimeoutMs + GRACE_MS },
    );

    api.on("agent_end", async (event, place) => {
      const session = recorded(place);
      if (session !== undefined) {
        await extraction.turnEnded(session, place.workspaceDir, event.messages);
      }
    });

    api.on(
      "before_compaction",
      async (event, place) => {
        const session = recorded(place);
        if (session !== undefined) {
          const given = { session, cwd: place.workspaceDir, messages: event.messages, transcript: event.sessionFile };
          await extraction.handOver("pre-compact", given);
        }
      },
      { timeoutMs: settings.handOverTimeoutMs + GRACE_MS },
    );

    api.on("after_compaction", (_event, place) => {
      const session = nameSession(place);
      if (session !== undefined) {
        context.beginAgain(session, "compact", place.workspaceDir);
      }
    });

    api.on(
      "before_reset",
      async (event, place) => {
        const session = recorded(place);
        if (session !== undefined) {
          const { messages, sessionFile: transcript, reason: source } = event;
          await extraction.handOver("session-end", { session, cwd: place.workspaceDir, source, messages, transcript });
        }
      },
      { timeoutMs: settings.handOverTimeoutMs + GRACE_MS },
    );

    api.on("session_end", async (event, ctx) => {
      const { reason, sessionId: session, nextSessionId: heir, sessionFile: transcript } = event;
      if (PAUSES.has(reason ?? "")) {
        return;
      }
      // After a reset most sessions are their own heirs.
      const isOver = heir !== session;
      if (isOver) {
        context.end(session);
      }
      if (heir !== undefined) {
        context.beginAgain(heir, reason === "compaction" ? "compact" : "clear");
      }
      if (reason === "deleted") {
        await extraction.forget(session);
      } else if (recorded({ sessionId: session, sessionKey: event.sessionKey ?? ctx.sessionKey }) !== undefined) {
        await extraction.handOver("session-end", { session, source: reason, transcript, isOver });
      }
    });

    api.on("gateway_start", (_event, ctx) => {
      // The gateway need not wait for this.
      void extraction.recover(ctx.abortSignal).catch((error: unknown) => tell(String(error)));
    });
    api.on("gateway_stop", () => extraction.stop());

    api.registerTool((place) => makeTools(ask, settings, place), { names: toolsOf(settings).map((tool) => tool.name) });
  },
});

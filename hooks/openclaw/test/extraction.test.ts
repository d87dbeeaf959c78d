import assert from "node:assert/strict";
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { assistant, Ground, Host, SESSION, until, user, waiting } from "./ground.ts";

const TALK = [user("I moved to Leeds last week"), assistant([{ type: "text", text: "How is the flat?" }])];
const SAID = [
  { role: "user", content: "I moved to Leeds last week", timestamp: "2026-11-20T14:30:00.000Z" },
  { role: "assistant", content: "How is the flat?", timestamp: "2026-11-20T14:31:00.000Z" },
];
const turn = (messages: unknown[] = TALK) => ({ messages, success: true });
const handed = (ground: Ground) =>
  ground.calls().map(({ args, input }) => ({ event: args.slice(1).join(" "), ...JSON.parse(input) }));

test("a turn's end keeps the conversation and starts nothing", async (t) => {
  const ground = new Ground(t);
  await new Host(ground).fire("agent_end", turn());
  assert.deepEqual(ground.calls(), []);
  assert.deepEqual(waiting(ground), [2]);
});

test("a compaction tells no messages: what was kept is handed over, once", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("agent_end", turn(), { workspaceDir: ground.folder });
  await host.fire("before_compaction", { messageCount: 2 }, { workspaceDir: ground.folder });
  const common = { session_id: SESSION, cwd: ground.folder, host: "openclaw" };
  assert.deepEqual(handed(ground), [{ event: "pre-compact", ...common, messages: SAID }]);
  assert.deepEqual(waiting(ground), [0]);
  await host.fire("before_compaction", { messageCount: 2 });
  assert.deepEqual(ground.calls(), []);
});

test("a session goes on after compactions and resets, and is handed over as it was from its beginning", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  const [more, evenMore] = [user("The flat has a garden"), user("hi again")];
  const reset = { reason: "reset", messageCount: 0, sessionId: SESSION, nextSessionId: SESSION };
  await host.fire("agent_end", turn());
  await host.fire("before_compaction", { messageCount: 2 });
  await host.fire("agent_end", turn([{ role: "compactionSummary", summary: "Leeds" }, ...TALK.slice(1), more]));
  await host.fire("before_reset", { messages: [...TALK, more], reason: "reset" });
  await host.fire("session_end", reset);
  await host.fire("agent_end", turn([evenMore]));
  await host.fire("before_reset", { messages: [evenMore], reason: "reset" });
  const counts = handed(ground).map((call) => [call.event, call.messages.length]);
  assert.deepEqual(counts, [["pre-compact", 2], ["session-end", 3], ["session-end", 4]]);
  assert.deepEqual(waiting(ground), [0]);
});

test("a reset tells the conversation, and the end that comes with it brings nothing more", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("agent_end", turn([user("I moved to Leeds last week")]));
  await Promise.all([
    host.fire("before_reset", { messages: TALK, sessionFile: "sqlite:main:1:/x.sqlite", reason: "new" }),
    host.fire("session_end", { sessionId: SESSION, messageCount: 2, reason: "new", nextSessionId: "next" }),
  ]);
  const [first, ...rest] = handed(ground);
  assert.equal(first?.event, "session-end");
  assert.equal(first?.source, "new");
  assert.deepEqual(first?.messages, SAID);
  assert.deepEqual(rest, []);
  assert.deepEqual(ground.kept(), []);
});

test("a session file is named when it is one and nothing else is known", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  const file = join(ground.folder, "session.jsonl");
  for (const marker of [undefined, "sqlite:main:1:/x.sqlite", "agent:main:main", "session.jsonl", file, ground.folder]) {
    await host.fire("session_end", { sessionId: SESSION, messageCount: 2, reason: "daily", sessionFile: marker });
  }
  assert.deepEqual(ground.calls(), []);
  writeFileSync(file, "{}\n");
  await host.fire("session_end", { sessionId: SESSION, messageCount: 2, reason: "daily", sessionFile: file });
  const [call] = handed(ground);
  assert.equal(call?.transcript_path, file);
  assert.equal(call?.messages, undefined);
});

test("silence is an occasion to learn, and a word ends it", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground, { idleMinutes: 0.005 });
  await host.fire("agent_end", turn(TALK.slice(0, 1)));
  await host.fire("agent_end", turn());
  await until(() => waiting(ground)[0] === 0);
  const calls = handed(ground);
  assert.deepEqual(calls.map(({ event, source }) => [event, source]), [["session-end", "idle"]]);
  assert.deepEqual(calls[0]?.messages, SAID);
});

test("with no minutes of silence a conversation waits for its end", async (t) => {
  const ground = new Ground(t);
  await new Host(ground, { idleMinutes: 0 }).fire("agent_end", turn());
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(ground.calls(), []);
});

test("a restart in the middle loses nothing", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  const before = new Host(ground, { idleMinutes: 0.001 });
  await before.fire("agent_end", turn(), { workspaceDir: ground.folder });
  await before.fire("session_end", { sessionId: SESSION, messageCount: 2, reason: "restart" });
  await before.fire("gateway_stop", {});
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(ground.calls(), []);

  const after = new Host(ground);
  await after.fire("gateway_start", { port: 1 }, {});
  await until(() => waiting(ground)[0] === 0);
  const [call] = handed(ground);
  assert.deepEqual([call?.event, call?.source, call?.session_id, call?.cwd], ["session-end", "restart", SESSION, ground.folder]);
  assert.deepEqual(call?.messages, SAID);
});

test("what was never kept is, when Quaid cannot take it", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground, { command: "/nowhere/quaid" });
  await host.fire("before_reset", { messages: TALK, reason: "new" });
  assert.deepEqual(waiting(ground), [2]);
});

test("two gateways that start at once lose nothing and fail at nothing", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  await new Host(ground).fire("agent_end", turn());
  const [one, other] = [new Host(ground), new Host(ground)];
  await Promise.all([one.fire("gateway_start", { port: 1 }), other.fire("gateway_start", { port: 2 })]);
  await until(() => waiting(ground)[0] === 0);
  await Promise.all([one.fire("gateway_stop", {}), other.fire("gateway_stop", {})]);
  const calls = handed(ground);
  assert.ok(calls.length >= 1);
  assert.ok(calls.every((call) => call.messages.length === 2));
  assert.deepEqual([...one.warnings, ...other.warnings], []);
});

test("a broken state file stops nobody", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  await new Host(ground).fire("agent_end", turn(), { sessionId: "broken" });
  const [broken = ""] = ground.kept();
  writeFileSync(broken, '{"v":1,"session":"bro');
  const host = new Host(ground);
  await host.fire("agent_end", turn());
  await host.fire("gateway_start", { port: 1 });
  const calls: object[] = [];
  await until(() => calls.push(...handed(ground)) > 0);
  await host.fire("gateway_stop", {});
  assert.deepEqual(calls.map((call) => Reflect.get(call, "session_id")), [SESSION]);
  await host.fire("agent_end", turn(), { sessionId: "broken" });
  await host.fire("before_compaction", { messageCount: 2 }, { sessionId: "broken" });
  assert.deepEqual(handed(ground)[0]?.messages, SAID);
});

test("what was handed over a month ago is not kept any longer", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  for (const sessionId of ["old", "waiting", "new"]) {
    await host.fire("agent_end", turn(), { sessionId });
    if (sessionId !== "waiting") {
      await host.fire("before_compaction", { messageCount: 2 }, { sessionId });
    }
    if (sessionId !== "new") {
      ground.kept().forEach((path) => utimesSync(path, 0, 0));
    }
  }
  ground.calls();
  await host.fire("gateway_start", { port: 1 });
  await until(() => ground.kept().length === 2 && waiting(ground).every((count) => count === 0));
  await host.fire("gateway_stop", {});
  assert.deepEqual(handed(ground).map((call) => call.session_id), ["waiting"]);
});

test("what Quaid could not take is kept and grows", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("agent_end", turn());
  ground.reply({ hook: { code: 3, talk: "quaid: a bug in Quaid" } });
  await host.fire("before_compaction", { messageCount: 2 });
  assert.match(host.warnings.join(), /could not be handed over and is kept: a bug in Quaid/);
  ground.reply({ hook: { talk: "quaid: hook session-end: there is no vault; make one with: quaid init" } });
  await host.fire("before_reset", {});
  assert.match(host.warnings.join(), /is kept: there is no vault/);
  ground.reply({});
  ground.calls();
  await host.fire("agent_end", turn([...TALK.slice(1), user("Small, but mine")]));
  await host.fire("before_compaction", { messageCount: 2 });
  const texts = handed(ground)[0]?.messages.map((said: { content: string }) => said.content);
  assert.deepEqual(texts, ["I moved to Leeds last week", "How is the flat?", "Small, but mine"]);
});

test("a deleted session is not learned from", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("agent_end", turn());
  await host.fire("session_end", { sessionId: SESSION, messageCount: 2, reason: "deleted" });
  assert.deepEqual(ground.kept(), []);
  assert.deepEqual(ground.calls(), []);
});

test("machines, incognito sessions, groups, and owners who do not want it leave nothing behind", async (t) => {
  const ground = new Ground(t);
  const places = [
    { trigger: "heartbeat" }, { trigger: "cron" }, { inputProvenance: { kind: "internal_system" } },
    ...["subagent:1", "dashboard:incognito-1", "discord:channel:7"].map((rest) => ({ sessionKey: `agent:main:${rest}` })),
    { sessionId: undefined, sessionKey: undefined },
  ];
  const host = new Host(ground);
  for (const place of places) {
    await host.fire("agent_end", turn(), place);
    await host.fire("before_reset", { messages: TALK }, place);
  }
  const unwilling = new Host(ground, { extract: false });
  await unwilling.fire("agent_end", turn());
  await unwilling.fire("before_reset", { messages: TALK });
  assert.deepEqual(ground.kept(), []);
  assert.deepEqual(ground.calls(), []);
  const group = new Host(ground, { groups: true });
  await group.fire("agent_end", turn(), { sessionKey: "agent:main:discord:channel:7" });
  assert.equal(ground.kept().length, 1);
});

test("events without what they may lack are no error", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("agent_end", { success: false, messages: undefined });
  await host.fire("before_compaction", { messageCount: 0 });
  await host.fire("before_reset", {});
  await host.fire("session_end", { sessionId: SESSION, messageCount: 0 });
  await host.fire("gateway_stop", {});
  assert.deepEqual(ground.calls(), []);
  assert.deepEqual(host.warnings, []);
});

test("a disk that cannot be written is told and stops no turn", async (t) => {
  const ground = new Ground(t);
  writeFileSync(ground.state, "a file where a folder should be");
  const host = new Host(ground);
  await host.fire("agent_end", turn());
  assert.match(host.warnings.join(), /ENOTDIR|EEXIST/);
});

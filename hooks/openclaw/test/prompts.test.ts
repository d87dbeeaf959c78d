import assert from "node:assert/strict";
import { test } from "node:test";

import { type Call, Ground, Host, SESSION, until, user } from "./ground.ts";

const MEMORY = "<quaid-memory>\n[MEMORY] (2026-11-20) Maya takes oat milk\n</quaid-memory>";
const CORE = "<quaid-memory>\n# USER.md\n</quaid-memory>";
const REPLIES = { "session-start": { out: CORE }, "user-prompt-submit": { out: `${MEMORY}\n` } };

const prompt = (text: string, more: object = {}) => ({ prompt: text, messages: [], ...more });
const events = (ground: Ground) => ground.calls().map((call) => call.args[1] ?? "").toSorted();

test("a prompt is given what the session should know and what the memory says to it", async (t) => {
  const ground = new Ground(t);
  ground.reply(REPLIES);
  const host = new Host(ground, { vault: "/v" });
  const given = await host.fire("before_prompt_build", prompt("What milk does Maya take?"), { workspaceDir: ground.folder });
  assert.deepEqual(given, { appendSystemContext: CORE, prependContext: MEMORY });
  const calls = ground.calls().toSorted((one, other) => one.args.join().localeCompare(other.args.join()));
  assert.deepEqual(calls.map((call) => call.args), [
    ["--vault=/v", "hook", "session-start", "--text"],
    ["--vault=/v", "hook", "user-prompt-submit", "--text"],
  ]);
  const common = { session_id: SESSION, cwd: ground.folder, host: "openclaw" };
  assert.deepEqual(calls.map((call) => JSON.parse(call.input)), [
    { ...common, source: "startup" },
    { ...common, prompt: "What milk does Maya take?" },
  ]);
  assert.ok(calls.every((call) => call.cwd.endsWith(ground.folder)));
});

test("OpenClaw keeps nothing of it, so the session's part is given again without being asked for again", async (t) => {
  const ground = new Ground(t);
  ground.reply(REPLIES);
  const host = new Host(ground);
  await host.fire("before_prompt_build", prompt("one two three"));
  const given = await host.fire("before_prompt_build", prompt("four five six"));
  assert.deepEqual(given, { appendSystemContext: CORE, prependContext: MEMORY });
  assert.deepEqual(events(ground), ["session-start", "user-prompt-submit", "user-prompt-submit"]);
});

test("after a compaction the session begins again, before its next prompt", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  await host.fire("before_prompt_build", prompt("one two three"));
  ground.calls();
  await host.fire("after_compaction", { messageCount: 3, compactedCount: 40 });
  const calls: Call[] = [];
  await until(() => calls.push(...ground.calls()) > 0);
  assert.equal(JSON.parse(calls[0]?.input ?? "").source, "compact");
  await host.fire("before_prompt_build", prompt("four five six"));
  assert.deepEqual(events(ground), ["user-prompt-submit"]);
});

test("the heir of a session begins as its parent ended", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  const ends = [["compaction", "h1", "compact"], ["reset", "h2", "clear"], ["reset", SESSION, "clear"]] as const;
  for (const [reason, heir, source] of ends) {
    await host.fire("session_end", { sessionId: SESSION, messageCount: 9, reason, nextSessionId: heir });
    await host.fire("before_prompt_build", prompt("one two three"), { sessionId: heir });
    const start = ground.calls().find((call) => call.args.includes("session-start"));
    assert.equal(JSON.parse(start?.input ?? "").source, source);
  }
});

test("of a session that was there before this process nothing is left: it begins", async (t) => {
  const ground = new Ground(t);
  await new Host(ground).fire("before_prompt_build", prompt("and then?", { messages: [user("before")] }));
  const start = ground.calls().find((call) => call.args.includes("session-start"));
  assert.equal(JSON.parse(start?.input ?? "").source, "startup");
});

test("the request itself is asked, not what the host has put around it", async (t) => {
  const ground = new Ground(t);
  const around = prompt("[history] what milk?", { currentUserMessage: "what milk?" });
  await new Host(ground).fire("before_prompt_build", around);
  const asked = ground.calls().find((call) => call.args.includes("user-prompt-submit"));
  assert.equal(JSON.parse(asked?.input ?? "").prompt, "what milk?");
});

test("nobody's prompt, and one that is not served, starts no process", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  const given = [
    await host.fire("before_prompt_build", prompt("  \n")),
    await host.fire("before_prompt_build", prompt("history", { currentUserMessage: "" })),
    await host.fire("before_prompt_build", prompt("poll"), { trigger: "heartbeat" }),
    await host.fire("before_prompt_build", prompt("job"), { trigger: "cron" }),
    await host.fire("before_prompt_build", prompt("task"), { inputProvenance: { kind: "inter_session" } }),
    await host.fire("before_prompt_build", prompt("hello all"), { sessionKey: "agent:main:telegram:group:7" }),
    await host.fire("before_prompt_build", prompt("hush"), { sessionKey: "agent:main:dashboard:incognito-1" }),
    await host.fire("before_prompt_build", prompt("who?"), { sessionKey: undefined, sessionId: undefined }),
  ];
  assert.deepEqual(given.filter((one) => one !== undefined), []);
  assert.deepEqual(ground.calls(), []);
});

test("without recall a session still begins with what it should know", async (t) => {
  const ground = new Ground(t);
  ground.reply(REPLIES);
  const host = new Host(ground, { recall: false });
  assert.deepEqual(await host.fire("before_prompt_build", prompt("what milk?")), { appendSystemContext: CORE });
  assert.deepEqual(events(ground), ["session-start"]);
});

test("what a hook says went wrong is told, though it leaves with 0", async (t) => {
  const ground = new Ground(t);
  ground.reply({ hook: { talk: "quaid: hook session-start: there is no vault; make one with: quaid init\n" } });
  const host = new Host(ground);
  assert.equal(await host.fire("before_prompt_build", prompt("what milk?")), undefined);
  assert.match(host.warnings.join(), /there is no vault; make one with: quaid init$/);
});

test("what Quaid cannot say in time is left out, and asked for again", { timeout: 10_000 }, async (t) => {
  const ground = new Ground(t);
  ground.reply({ ...REPLIES, "session-start": { out: CORE, afterMs: 60_000 } });
  const host = new Host(ground, { promptTimeoutMs: 1_000 });
  assert.deepEqual(await host.fire("before_prompt_build", prompt("what milk?")), { prependContext: MEMORY });
  assert.match(host.warnings.join(), /longer than 1 s and was stopped/);
  ground.reply(REPLIES);
  const given = await host.fire("before_prompt_build", prompt("what milk?"));
  assert.deepEqual(given, { appendSystemContext: CORE, prependContext: MEMORY });
});

test("a turn goes on when there is no quaid, and the owner is told how to help", async (t) => {
  const host = new Host(new Ground(t), { command: "/nowhere/quaid" });
  assert.equal(await host.fire("before_prompt_build", prompt("what milk?")), undefined);
  assert.match(host.warnings.join(), /\/nowhere\/quaid cannot be run/);
});

test("8,000 characters are injected, and not one more", async (t) => {
  const ground = new Ground(t);
  const host = new Host(ground);
  ground.reply({ "user-prompt-submit": { out: "m".repeat(8_000) } });
  assert.deepEqual(await host.fire("before_prompt_build", prompt("a")), { prependContext: "m".repeat(8_000) });
  ground.reply({ "user-prompt-submit": { out: "m".repeat(8_001) } });
  assert.equal(await host.fire("before_prompt_build", prompt("b")), undefined);
});

test("the host waits a little longer than Quaid may take", (t) => {
  const host = new Host(new Ground(t), { promptTimeoutMs: 2_000, handOverTimeoutMs: 5_000 });
  assert.equal(host.budgets.get("before_prompt_build"), 3_000);
  assert.equal(host.budgets.get("before_compaction"), 6_000);
  assert.equal(host.budgets.get("before_reset"), 6_000);
});

import assert from "node:assert/strict";
import { test } from "node:test";

import { isPersonal, isServed, listSaid, nameSession, withoutMemory } from "../src/conversation.ts";

test("what people and the assistant said is kept, with its time", () => {
  const messages = [
    { role: "user", content: "I moved to Leeds", timestamp: 1763649000000 },
    { role: "assistant", content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "Nice." }, { type: "toolCall", name: "x" }] },
    { role: "toolResult", content: [{ type: "text", text: "secret of a tool" }] },
    { role: "assistant", content: [{ type: "text", text: "One" }, { type: "image" }, { type: "text", text: "Two" }], timestamp: "2026-11-20T14:31:00Z" },
  ];
  assert.deepEqual(listSaid(messages), [
    { role: "user", content: "I moved to Leeds", timestamp: "2025-11-20T14:30:00.000Z" },
    { role: "assistant", content: "Nice." },
    { role: "assistant", content: "One\nTwo", timestamp: "2026-11-20T14:31:00.000Z" },
  ]);
});

test("what machines said is not", () => {
  const messages = [
    { role: "user", content: "[OpenClaw heartbeat poll]" },
    { role: "assistant", content: "NO_REPLY" },
    { role: "assistant", content: "HEARTBEAT_OK" },
    { role: "user", content: "do this", provenance: { kind: "inter_session" } },
    { role: "compactionSummary", summary: "…" },
    { role: "user", content: "<quaid-memory>\nMaya owns a zebra.\n</quaid-memory>" },
  ];
  assert.deepEqual(listSaid(messages), []);
});

test("nonsense is nothing said", () => {
  for (const nonsense of [undefined, null, 7, "text", {}, [null, 7, "x", [], {}, { role: "user" }, { role: "user", content: 7 }]]) {
    assert.deepEqual(listSaid(nonsense), []);
  }
  assert.deepEqual(listSaid([{ role: "user", content: "hello", timestamp: "soon" }]), [{ role: "user", content: "hello" }]);
  assert.deepEqual(listSaid([{ role: "user", content: "hello", timestamp: 9e99 }]), [{ role: "user", content: "hello" }]);
});

test("shown memory is taken out of what was said around it", () => {
  assert.equal(withoutMemory("a <quaid-memory>x</quaid-memory> b <QUAID-MEMORY k='v'>y</quaid-memory>c"), "a  b c");
  assert.equal(withoutMemory("a <quaid-memory>x <quaid-memory>y</quaid-memory> b"), "a  b");
});

test("a tag that somebody only mentions takes nothing with it", () => {
  for (const text of ["what does <quaid-memory> mean?", "</quaid-memory> alone", "<quaid-memoryish>x</quaid-memoryish>"]) {
    assert.equal(withoutMemory(text), text);
  }
});

test("a million open tags are read in one go", { timeout: 5_000 }, () => {
  const text = "<quaid-memory>".repeat(1_000_000);
  assert.equal(withoutMemory(text), text);
});

test("timers, other agents and programs are no persons", () => {
  const key = (rest: string) => ({ sessionKey: `agent:main:${rest}` });
  assert.ok(isPersonal({}));
  assert.ok(isPersonal({ ...key("main"), trigger: "user", inputProvenance: { kind: "external_user" } }));
  assert.ok(isPersonal(key("telegram:direct:subagent")));
  for (const trigger of ["heartbeat", "cron", "memory"]) {
    assert.ok(!isPersonal({ trigger }));
  }
  for (const kind of ["inter_session", "internal_system"]) {
    assert.ok(!isPersonal({ trigger: "user", inputProvenance: { kind } }));
  }
  for (const rest of ["subagent:1b2c", "cron:job-1:run:7", "hook:gmail", "acp:x"]) {
    assert.ok(!isPersonal(key(rest)));
  }
});

test("incognito sessions are never served, groups when their owner says so", () => {
  const group = { sessionKey: "agent:main:telegram:group:-1001:topic:7" };
  assert.ok(isServed({ sessionKey: "agent:main:main" }, false));
  assert.ok(!isServed(group, false));
  assert.ok(!isServed({ sessionKey: "agent:main:slack:channel:c1" }, false));
  assert.ok(isServed(group, true));
  assert.ok(!isServed({ sessionKey: "agent:main:dashboard:incognito-12345678-90ab" }, true));
});

test("a session is named by its id, else by its key", () => {
  assert.equal(nameSession({ sessionId: "1b2c", sessionKey: "agent:main:main" }), "1b2c");
  assert.equal(nameSession({ sessionId: " ", sessionKey: "agent:main:main" }), "agent:main:main");
  assert.equal(nameSession({}), undefined);
});

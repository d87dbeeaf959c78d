import assert from "node:assert/strict";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import type { Said } from "../src/conversation.ts";
import { decode, encode, grow, KeptConversations, trim } from "../src/kept.ts";
import { Ground } from "./ground.ts";

const said = (...texts: string[]): Said[] => texts.map((content) => ({ role: "user", content }));

const conversation = (...texts: string[]) => ({ session: "s", cwd: undefined, messages: said(...texts), handedOver: 0 });

test("a conversation that has grown is itself and what came after", () => {
  assert.deepEqual(grow([], said("a", "b")), said("a", "b"));
  assert.deepEqual(grow(said("a", "b"), said("a", "b", "c")), said("a", "b", "c"));
  assert.deepEqual(grow(said("a", "b"), []), said("a", "b"));
  assert.deepEqual(grow(said("a", "ok"), said("a", "ok", "c", "ok")), said("a", "ok", "c", "ok"));
});

test("what a compaction or a reset has left is joined where the two meet", () => {
  assert.deepEqual(grow(said("a", "b", "c"), said("c", "d")), said("a", "b", "c", "d"));
  assert.deepEqual(grow(said("a", "b"), said("x", "y")), said("a", "b", "x", "y"));
  assert.deepEqual(grow(said("hi", "a", "b"), said("hi", "c")), said("hi", "a", "b", "hi", "c"));
});

test("a host that tells more than was heard is followed from where they agree", () => {
  assert.deepEqual(grow(said("b", "c"), said("a", "b", "c", "d")), said("b", "c", "d"));
  assert.deepEqual(grow(said("c"), said("a", "b", "c", "d")), said("c", "d"));
  assert.deepEqual(grow(said("x", "ok", "y", "ok"), said("w", "x", "ok", "y", "ok", "z", "ok")), said("x", "ok", "y", "ok", "z", "ok"));
});

test("one word in common is chance", () => {
  assert.deepEqual(grow(said("a", "ok"), said("b", "ok", "c")), said("a", "ok", "b", "ok", "c"));
});

test("where a conversation was rewound, what came instead is added", () => {
  assert.deepEqual(grow(said("a", "b", "c"), said("a", "b", "c2", "d")), said("a", "b", "c", "c2", "d"));
  assert.deepEqual(grow(said("x", "a", "b", "c"), said("a", "b", "c2")), said("x", "a", "b", "c", "c2"));
});

test("times that the host tells in two ways make no second message", () => {
  const before: Said[] = [{ role: "user", content: "a", timestamp: "2026-11-20T14:30:00.000Z" }];
  assert.deepEqual(grow(before, said("a")), before);
});

test("the oldest of what was handed over goes when there is too much, and nothing else", () => {
  const long = { ...conversation("aaaa", "bbbb", "cccc"), handedOver: 2 };
  assert.deepEqual(trim(long, 12), long);
  assert.deepEqual(trim(long, 9), { ...conversation("bbbb", "cccc"), handedOver: 1 });
  assert.deepEqual(trim(long, 1), { ...conversation("cccc"), handedOver: 0 });
});

test("a file says what was kept", () => {
  const kept = { session: "s", cwd: "/w", messages: said("a", "b"), handedOver: 1 };
  assert.deepEqual(decode(encode(kept)), kept);
});

test("a broken file says nothing", () => {
  const whole = encode(conversation("a"));
  const broken = [
    "", "null", "7", "[]", "{}", whole.slice(0, -5), whole.replace('"v":1', '"v":2'), whole.replace('"s"', "7"),
    whole.replace('"handedOver":0', '"handedOver":2'), whole.replace('"handedOver":0', '"handedOver":-1'),
    '{"v":1,"session":"","handedOver":0,"messages":[]}',
  ];
  for (const text of broken) {
    assert.equal(decode(text), null);
  }
});

test("a session's name is no path, and its file is its owner's alone", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  const kept = new KeptConversations(() => folder);
  const session = "../../etc/passwd";
  await kept.keep({ ...conversation("a"), session });
  const [name = ""] = readdirSync(folder);
  assert.match(name, /^[0-9a-f]{32}\.json$/);
  assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  assert.deepEqual((await kept.find(session))?.conversation.messages, said("a"));
});

test("broken files are passed over and left", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  mkdirSync(join(folder, "folder.json"), { recursive: true });
  writeFileSync(join(folder, "00.json"), '{"v":1,"sess');
  writeFileSync(join(folder, "a.123.new"), "half");
  const kept = new KeptConversations(() => folder);
  await kept.keep(conversation("a"));
  assert.deepEqual((await kept.list()).map((found) => found.conversation.session), ["s"]);
  assert.equal(readdirSync(folder).length, 4);
});

test("what another gateway has added is seen", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  const [one, other] = [new KeptConversations(() => folder), new KeptConversations(() => folder)];
  assert.ok(await one.isAsFound("s", null));
  await one.keep(conversation("a"));
  const found = await one.find("s");
  assert.ok(await one.isAsFound("s", found));
  assert.ok(!(await one.isAsFound("s", null)));
  await other.keep(conversation("a", "b"));
  assert.ok(!(await one.isAsFound("s", found)));
});

test("where nothing was ever kept there is nothing", async () => {
  const kept = new KeptConversations(() => "/nowhere/at/all");
  assert.deepEqual(await kept.list(), []);
  assert.equal(await kept.find("s"), null);
  await kept.remove("s");
});

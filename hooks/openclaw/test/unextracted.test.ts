import assert from "node:assert/strict";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import type { Said } from "../src/conversation.ts";
import { decode, encode, grow, Unextracted } from "../src/unextracted.ts";
import { Ground } from "./ground.ts";

const said = (...texts: string[]): Said[] => texts.map((content) => ({ role: "user", content }));

test("a conversation that has grown is itself and what came after", () => {
  assert.deepEqual(grow([], said("a", "b")), said("a", "b"));
  assert.deepEqual(grow(said("a", "b"), said("a", "b", "c")), said("a", "b", "c"));
  assert.deepEqual(grow(said("a", "b"), []), said("a", "b"));
  assert.deepEqual(grow(said("a", "ok"), said("a", "ok", "c", "ok")), said("a", "ok", "c", "ok"));
});

test("what a compaction has left is joined where the two meet", () => {
  assert.deepEqual(grow(said("a", "b", "c"), said("c", "d")), said("a", "b", "c", "d"));
  assert.deepEqual(grow(said("a", "b"), said("x", "y")), said("a", "b", "x", "y"));
});

test("a conversation that was rewound is as it went on", () => {
  assert.deepEqual(grow(said("a", "b", "c"), said("a", "b2")), said("a", "b2"));
});

test("times that the host tells in two ways make no second message", () => {
  const kept: Said[] = [{ role: "user", content: "a", timestamp: "2026-11-20T14:30:00.000Z" }];
  assert.deepEqual(grow(kept, said("a")), kept);
});

test("a file says what was kept", () => {
  const kept = { session: "s", cwd: "/w", messages: said("a") };
  assert.deepEqual(decode(encode(kept)), kept);
});

test("a broken file says nothing", () => {
  const whole = encode({ session: "s", cwd: undefined, messages: said("a") });
  const broken = ["", "null", "7", "[]", "{}", whole.slice(0, -5), whole.replace('"v":1', '"v":2'), whole.replace('"s"', "7"), '{"v":1,"session":"","messages":[]}'];
  for (const text of broken) {
    assert.equal(decode(text), null);
  }
});

test("a session's name is no path, and its file is its owner's alone", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  const unextracted = new Unextracted(() => folder);
  const session = "../../etc/passwd";
  await unextracted.keep({ session, cwd: undefined, messages: said("a") });
  const [name = ""] = readdirSync(folder);
  assert.match(name, /^[0-9a-f]{32}\.json$/);
  assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  assert.deepEqual((await unextracted.find(session))?.kept.messages, said("a"));
});

test("broken files are passed over and left", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  mkdirSync(join(folder, "folder.json"), { recursive: true });
  writeFileSync(join(folder, "00.json"), '{"v":1,"sess');
  writeFileSync(join(folder, "a.123.new"), "half");
  const unextracted = new Unextracted(() => folder);
  await unextracted.keep({ session: "s", cwd: undefined, messages: said("a") });
  assert.deepEqual((await unextracted.list()).map(({ kept }) => kept.session), ["s"]);
  assert.equal(readdirSync(folder).length, 4);
});

test("what another gateway has added is not removed", async (t) => {
  const folder = join(new Ground(t).folder, "kept");
  const [one, other] = [new Unextracted(() => folder), new Unextracted(() => folder)];
  await one.keep({ session: "s", cwd: undefined, messages: said("a") });
  const found = await one.find("s");
  assert.ok(found);
  await other.keep({ session: "s", cwd: undefined, messages: said("a", "b") });
  await one.remove(found);
  assert.deepEqual((await one.find("s"))?.kept.messages, said("a", "b"));
});

test("where nothing was ever kept there is nothing", async () => {
  const unextracted = new Unextracted(() => "/nowhere/at/all");
  assert.deepEqual(await unextracted.list(), []);
  assert.equal(await unextracted.find("s"), null);
});

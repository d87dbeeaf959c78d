/** The plugin with the real quaid, named by QUAID_BIN; without it these tests are skipped. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Ground, Host, user, waiting } from "./ground.ts";

const QUAID = process.env["QUAID_BIN"];
const skip = QUAID === undefined ? "QUAID_BIN names no quaid" : false;

test("a statement is stored, found, read and forgotten", { skip, timeout: 60_000 }, async (t) => {
  const ground = new Ground(t);
  const vault = join(ground.folder, "vault");
  execFileSync(QUAID ?? "", ["init", vault, "--no-fetch", "-q"]);
  const host = new Host(ground, { command: QUAID, vault });
  const stored = await host.use("memory_store", { text: "--pinned Maya takes oat milk", type: "preference" });
  const id = /\(id (\w+)\)/.exec(stored)?.[1] ?? "";
  assert.match(stored, /^created: --pinned Maya takes oat milk/);
  assert.match(await host.use("memory_recall", { query: "--which oat milk" }), new RegExp(`Maya takes oat milk .*id ${id}`));
  assert.match(await host.use("memory_read", { ref: id }), /--pinned Maya takes oat milk$/);
  assert.match(await host.use("memory_note", { text: "-call Maya" }), /^Noted/);
  assert.match(await host.use("memory_forget", { ref: id }), /^forgotten/);
  await assert.rejects(host.use("memory_forget", { ref: "--no-such" }), /No note is called '--no-such'/);
  await assert.rejects(host.use("memory_recall", { query: "milk", dateFrom: "soonish" }), /is not a date/);
});

test("a statement replaces the one it makes untrue", { skip, timeout: 60_000 }, async (t) => {
  const ground = new Ground(t);
  const vault = join(ground.folder, "vault");
  execFileSync(QUAID ?? "", ["init", vault, "--no-fetch", "-q"]);
  const host = new Host(ground, { command: QUAID, vault });
  const stored = await host.use("memory_store", { text: "We track our work in Linear" });
  const id = /\(id (\w+)\)/.exec(stored)?.[1] ?? "";
  await host.use("memory_store", { text: "We track our work in Jira", replaces: "We track our work in Linear" });
  assert.match(await host.use("memory_read", { ref: id }), /^\[superseded\]/);
  await assert.rejects(host.use("memory_store", { text: "We meet at nine", replaces: "We meet on the moon" }), /We meet on the moon/);
});

test("a project is made, its documents are found, read and listed", { skip, timeout: 60_000 }, async (t) => {
  const ground = new Ground(t);
  const vault = join(ground.folder, "vault");
  const source = join(ground.folder, "studio");
  mkdirSync(source);
  writeFileSync(join(source, "README.md"), "# Studio\n\nThe kiln cools for nine hours.\n");
  writeFileSync(join(source, "more.txt"), "More of it.\n");
  execFileSync(QUAID ?? "", ["init", vault, "--no-fetch", "-q"]);
  const host = new Host(ground, { command: QUAID, vault });
  assert.match(await host.use("project_create", { name: "studio", sourceRoots: [source] }), /^made: studio/);
  assert.match(await host.use("docs_register", { path: join(source, "more.txt") }), /^registered: more\.txt/);
  assert.match(await host.use("docs_search", { query: "how long does the kiln cool?" }), /1\. studio:README\.md:1-3 Studio.*\n   \| # Studio/);
  assert.match(await host.use("docs_read", { ref: "README" }), /nine hours/);
  assert.match(await host.use("docs_list", { project: "studio" }), /- studio:more\.txt/);
  await assert.rejects(host.use("docs_read", { ref: "--no-such" }), /There is no document/);
});

test("the hooks that Quaid has take what the plugin sends", { skip, timeout: 60_000 }, async (t) => {
  const ground = new Ground(t);
  const vault = join(ground.folder, "vault");
  execFileSync(QUAID ?? "", ["init", vault, "--no-fetch", "-q"]);
  const host = new Host(ground, { command: QUAID, vault });
  await host.fire("before_prompt_build", { prompt: "Which milk does Maya take?", messages: [] });
  await host.fire("agent_end", { messages: [user("Maya takes oat milk in her coffee")], success: true });
  await host.fire("before_compaction", { messageCount: 1 });
  assert.deepEqual(host.warnings, []);
  assert.deepEqual(waiting(ground), [0]);
});

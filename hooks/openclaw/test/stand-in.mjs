#!/usr/bin/env node
// Stands in for the quaid executable: writes down how it was called, and answers as the test has told it to.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

const folder = process.env.STAND_IN;
const args = process.argv.slice(2);
const input = readFileSync(0, "utf8");
const call = { args, input, cwd: process.cwd() };
writeFileSync(join(folder, `call-${process.hrtime.bigint()}-${process.pid}.json`), JSON.stringify(call));

const replies = JSON.parse(readFileSync(join(folder, "replies.json"), "utf8"));
const reply = replies[args.find((arg) => arg in replies)] ?? {};
await setTimeout(reply.afterMs ?? 0);
process.stdout.write(typeof reply.out === "object" ? JSON.stringify(reply.out) : (reply.out ?? ""));
process.stderr.write(reply.talk ?? "");
process.exitCode = reply.code ?? 0;

/** The tools an agent has of its own accord; each is one command of Quaid. */

import type { AnyAgentTool, OpenClawPluginToolContext } from "openclaw/plugin-sdk/plugin-entry";

import { isObject, isServed, nameSession } from "./conversation.ts";
import { DOCS_TOOLS } from "./documents.ts";
import type { Answer, Ask } from "./quaid.ts";
import { renderNote, renderRecall, renderWritten } from "./rendering.ts";
import type { Settings } from "./settings.ts";
import { option, options, text, type Tool } from "./tool.ts";

const FACT_TYPES = ["fact", "preference", "belief", "experience", "event", "decision"];

const REF = { type: "string", minLength: 1, maxLength: 300 };

const MEMORY_TOOLS: readonly Tool[] = [
  {
    name: "memory_recall",
    label: "Recall",
    description:
      "Search the user's long-term memory: facts, past conversations and notes. " +
      "USE WHEN the user mentions people, places, things of theirs, asks about preferences, plans or the past, or refers " +
      "to something said before. SKIP WHEN it is general knowledge, plain coding, or a short acknowledgement. " +
      "Name people and things in the query and be specific. How many memories come back depends on how much there is; " +
      "give a limit only to have fewer. A memory marked [superseded] is no longer true.",
    properties: {
      query: { type: "string", minLength: 1, maxLength: 2_000, description: "What to find, with names: a question or words." },
      limit: { type: "integer", minimum: 1, maximum: 50, description: "At most so many. Leave out for as many as fit." },
      dateFrom: { type: "string", maxLength: 40, description: "Only what is from this day on: YYYY-MM-DD." },
      dateTo: { type: "string", maxLength: 40, description: "Only what is up to this day: YYYY-MM-DD." },
    },
    required: ["query"],
    // The session is not named: who asks of their own accord wants all of it, also what they have just stored.
    command: (params) => ({
      args: [
        "recall",
        ...option("limit", params["limit"]),
        ...option("from", params["dateFrom"]),
        ...option("to", params["dateTo"]),
        "--",
        text(params, "query"),
      ],
    }),
    render: renderRecall,
  },
  {
    name: "memory_store",
    label: "Remember",
    description:
      "Store one lasting statement about the user, their people, things or decisions, in a whole sentence with names " +
      "instead of pronouns. USE WHEN the user asks you to remember something, or says something that will matter in " +
      "later conversations. SKIP WHEN it matters only now, or is general knowledge: conversations are learned from anyway. " +
      'When they correct or change a fact ("we moved from Linear to Jira"), give the old one as `replaces`.',
    properties: {
      text: { type: "string", minLength: 1, maxLength: 4_000, description: "One statement of at least three words." },
      replaces: { type: "string", maxLength: 4_000, description: "The id or the words of the fact that is no longer true with it." },
      type: { type: "string", enum: FACT_TYPES, description: "What it is; fact, where nothing else fits." },
      source: { type: "string", enum: ["user", "assistant"], description: "user: they said it; assistant: you concluded it." },
      keywords: { type: "array", items: { type: "string" }, maxItems: 20, description: "Further words to find it by." },
    },
    required: ["text"],
    command: (params, session) => ({
      args: [
        "remember",
        ...option("type", params["type"]),
        ...option("source", params["source"]),
        ...options("keywords", params["keywords"]),
        ...option("replaces", params["replaces"]),
        ...session,
        "-",
      ],
      input: text(params, "text"),
    }),
    render: renderWritten,
  },
  {
    name: "memory_note",
    label: "Note to self",
    description:
      "Keep a line for yourself that is learned from together with this conversation: something to come back to, which is " +
      "no lasting fact by itself.",
    properties: { text: { type: "string", minLength: 1, maxLength: 4_000, description: "The line." } },
    required: ["text"],
    command: (params, session) => ({ args: ["note", ...session, "--", text(params, "text")] }),
    render: () => "Noted; it is kept when this conversation is learned from.",
  },
  {
    name: "memory_read",
    label: "Read a memory",
    description: "Read one memory in full with what it is connected to: a fact, a note, or a turn of a conversation.",
    properties: { ref: { ...REF, description: "Its id as memory_recall gives it, its path, or the name of a person or thing." } },
    required: ["ref"],
    command: (params) => ({ args: ["get", "--", text(params, "ref")] }),
    render: renderNote,
  },
  {
    name: "memory_forget",
    label: "Forget",
    description:
      "Take one memory out. USE WHEN the user asks for it, or says that a memory is wrong. Find it with memory_recall " +
      "first and give its id. It stays in the history of the vault, from where the user can bring it back.",
    properties: { ref: { ...REF, description: "The id as memory_recall gives it." } },
    required: ["ref"],
    command: (params) => ({ args: ["forget", "--", text(params, "ref")] }),
    render: renderWritten,
  },
];

/** Which tools there are with these settings. */
export function toolsOf(settings: Settings): readonly Tool[] {
  return settings.docs ? [...MEMORY_TOOLS, ...DOCS_TOOLS] : MEMORY_TOOLS;
}

/** The tools for one conversation; none where the memory is not served. */
export function makeTools(ask: Ask, settings: Settings, place: OpenClawPluginToolContext): AnyAgentTool[] | null {
  if (!isServed(place, settings.groups)) {
    return null;
  }
  const session = option("session", nameSession(place));
  return toolsOf(settings).map((tool) => ({
    name: tool.name,
    label: tool.label,
    description: tool.description,
    parameters: {
      type: "object",
      properties: tool.properties,
      required: tool.required,
      additionalProperties: false,
    },
    async execute(_call: string, params: unknown) {
      const given = isObject(params) ? params : {};
      const command = tool.command(given, session);
      const args = ["--json", ...command.args];
      const details = read(await ask({ ...command, args, cwd: place.workspaceDir, timeoutMs: settings.toolTimeoutMs }));
      return { content: [{ type: "text" as const, text: tool.render(details, given) }], details };
    },
  }));
}

/** Quaid's answer as an object. The host makes a tool's error of what is thrown here. */
function read({ out, problem }: Answer): Record<string, unknown> {
  if (problem !== null) {
    throw new Error(problem);
  }
  let answer: unknown;
  try {
    answer = JSON.parse(out);
  } catch {
    answer = null;
  }
  if (!isObject(answer)) {
    throw new Error("Quaid's answer cannot be read; is the command the right one, and not too old?");
  }
  return answer;
}

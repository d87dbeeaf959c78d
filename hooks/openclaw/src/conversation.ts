/** What of a host's messages was said by somebody, and which conversations are the owner's own. Pure. */

export interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
  /** ISO 8601. */
  readonly timestamp?: string;
}

/** What hooks and tools are told of where they run; every field may be missing. */
export interface Place {
  readonly sessionId?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly workspaceDir?: string | undefined;
  readonly trigger?: string | undefined;
  readonly inputProvenance?: { readonly kind?: string } | undefined;
}

const MACHINE_TRIGGERS = new Set(["cron", "heartbeat", "memory"]);
const MACHINE_TEXT = /^\[OpenClaw (?:heartbeat poll|exec completion|cron wake|session event)\]/;
const SILENCE = new Set(["NO_REPLY", "HEARTBEAT_OK"]);
const SHARED = /:(?:group|channel):/i;
const NOT_A_PERSONS = /^(?:agent:[^:]+:)?(?:subagent|cron|hook|acp):/i;
const UNRECORDED = /:incognito-[^:]*$/i;
const MEMORY_TAG = /<(\/?)quaid-memory\b[^<>]{0,200}>/gi;

/** The session's name: its id, which is new after a reset, else the key under which the host finds it. */
export function nameSession(place: Place): string | undefined {
  return place.sessionId?.trim() || place.sessionKey?.trim() || undefined;
}

/** Whether the memory is for this conversation: not for one that leaves no trace, and for one where others talk only
 * when the owner has said so.
 */
export function isServed(place: Place, groups: boolean): boolean {
  const key = place.sessionKey ?? "";
  return !UNRECORDED.test(key) && (groups || !SHARED.test(key));
}

/** Whether a person speaks in this turn, and no timer, no other agent and no program. */
export function isPersonal(place: Place): boolean {
  const origin = place.inputProvenance?.kind;
  return (
    !MACHINE_TRIGGERS.has(place.trigger ?? "") &&
    (origin === undefined || origin === "external_user") &&
    !NOT_A_PERSONS.test(place.sessionKey ?? "")
  );
}

/** What was said, in order: text of people and of the assistant, without tool calls and results, thinking, what the
 * host told itself, and what Quaid has shown.
 */
export function listSaid(messages: unknown): Said[] {
  return Array.isArray(messages) ? messages.flatMap((message) => read(message)) : [];
}

function read(message: unknown): Said[] {
  if (!isObject(message)) {
    return [];
  }
  const role = message["role"];
  const content = withoutMemory(textOf(message["content"])).trim();
  if ((role !== "user" && role !== "assistant") || !content || isMachines(role, content, message["provenance"])) {
    return [];
  }
  const timestamp = timeOf(message["timestamp"]);
  return [{ role, content, ...(timestamp === undefined ? {} : { timestamp }) }];
}

function isMachines(role: Said["role"], content: string, provenance: unknown): boolean {
  if (role === "assistant") {
    return SILENCE.has(content);
  }
  const origin = isObject(provenance) ? provenance["kind"] : undefined;
  return MACHINE_TEXT.test(content) || (origin !== undefined && origin !== "external_user");
}

function textOf(content: unknown): string {
  if (typeof content === "string") {
    return content;
  }
  const blocks = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => (isObject(block) && block["type"] === "text" ? block["text"] : ""));
  return texts.filter((text) => typeof text === "string" && text).join("\n");
}

/** `text` without closed memory blocks; what is left open is for Quaid to judge. Linear, whatever it is given. */
export function withoutMemory(text: string): string {
  let kept = "";
  let from = 0;
  let opened = -1;
  for (const tag of text.matchAll(MEMORY_TAG)) {
    if (!tag[1]) {
      opened = opened < 0 ? tag.index : opened;
    } else if (opened >= 0) {
      kept += text.slice(from, opened);
      from = tag.index + tag[0].length;
      opened = -1;
    }
  }
  return kept + text.slice(from);
}

function timeOf(value: unknown): string | undefined {
  const date = typeof value === "number" || typeof value === "string" ? new Date(value) : undefined;
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

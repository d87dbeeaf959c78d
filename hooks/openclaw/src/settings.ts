/** What the owner has set under `plugins.entries.quaid.config`; the manifest's schema says the same to the host. */

export interface Settings {
  readonly command: string;
  readonly vault: string | undefined;
  readonly recall: boolean;
  readonly extract: boolean;
  readonly docs: boolean;
  readonly groups: boolean;
  readonly idleMinutes: number;
  readonly promptTimeoutMs: number;
  readonly handOverTimeoutMs: number;
  readonly toolTimeoutMs: number;
}

/** The settings in `config`. The host has held it against the schema; what does not fit all the same is as if unset. */
export function readSettings(config: Record<string, unknown> = {}): Settings {
  return {
    command: textOf(config["command"]) ?? "quaid",
    vault: textOf(config["vault"]),
    recall: config["recall"] !== false,
    extract: config["extract"] !== false,
    docs: config["docs"] !== false,
    groups: config["groups"] === true,
    idleMinutes: numberOr(config["idleMinutes"], 10, 0, 1440),
    promptTimeoutMs: numberOr(config["promptTimeoutMs"], 3_000, 100, 14_000),
    handOverTimeoutMs: numberOr(config["handOverTimeoutMs"], 10_000, 100, 28_000),
    toolTimeoutMs: numberOr(config["toolTimeoutMs"], 90_000, 1_000, 600_000),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() ? value.trim() : undefined;
}

function numberOr(value: unknown, fallback: number, least: number, most: number): number {
  return typeof value === "number" && value >= least && value <= most ? value : fallback;
}

/** What a tool is here: one command of Quaid, and how its answer reads. Pure. */

export type Params = Readonly<Record<string, unknown>>;

export interface Command {
  readonly args: readonly string[];
  readonly input?: string;
}

export interface Tool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
  /** Every value stands behind `=`, behind `--` or on stdin, so that none is taken for an option. */
  command(params: Params, session: readonly string[]): Command;
  render(answer: Record<string, unknown>, params: Params): string;
}

export function option(name: string, value: unknown): string[] {
  return typeof value === "number" || (typeof value === "string" && value.trim()) ? [`--${name}=${value}`] : [];
}

/** One option for each of a list. */
export function options(name: string, values: unknown): string[] {
  return Array.isArray(values) ? values.flatMap((value) => option(name, value)) : [];
}

export function text(params: Params, name: string): string {
  const value = params[name];
  if (typeof value !== "string" || !value.trim()) {
    throw new Error(`${name} must be a text that says something.`);
  }
  return value;
}

import type { ErrorCode } from "./protocol.js";

/** Codes of this package beside those of the gateway. */
export type ClientErrorCode =
  | "network"
  | "stream_cut"
  | "stream_error"
  | "plugin_refused"
  | "tool_not_found"
  | "http_error";

/** What went wrong, with a code that programs may compare. */
export class ToolyardError extends Error {
  override readonly name = "ToolyardError";
  readonly code: ErrorCode | ClientErrorCode | (string & {});
  /** The HTTP status, if the gateway answered. */
  readonly status: number | undefined;
  /** The limit that was hit, if one was. */
  readonly limit: number | undefined;
  /** The gateway's name for the request, for its log. */
  readonly requestId: string | undefined;
  /** Seconds to wait before the same request may work. */
  readonly retryAfter: number | undefined;

  constructor(
    code: ToolyardError["code"],
    message: string,
    more: { status?: number; limit?: number; requestId?: string; retryAfter?: number; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status;
    this.limit = more.limit;
    this.requestId = more.requestId;
    this.retryAfter = more.retryAfter;
  }

  /** The same request may work later. */
  get passing(): boolean {
    if (this.status === undefined) return this.code === "network";
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** The sentence of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return typeof thrown === "string" ? thrown : (JSON.stringify(thrown) ?? String(thrown));
}

/** Reads a refusal: the native form, or text as the chat route sends it. */
export async function refusalOf(response: Response): Promise<ToolyardError> {
  const text = await response.text().catch(() => "");
  const requestId = response.headers.get("x-request-id");
  const after = Number(response.headers.get("retry-after") ?? NaN);
  const more: ConstructorParameters<typeof ToolyardError>[2] = { status: response.status };
  if (requestId !== null) more.requestId = requestId;
  if (Number.isFinite(after)) more.retryAfter = after;
  let code = response.headers.get("x-toolyard-error") ?? "http_error";
  let message = text || `The gateway answered ${response.status}`;
  try {
    const { error } = JSON.parse(text) as { error?: { code?: string; message?: string; limit?: number } | string };
    if (typeof error === "string") message = error;
    else if (error) {
      code = error.code ?? code;
      message = error.message ?? message;
      if (typeof error.limit === "number") more.limit = error.limit;
    }
  } catch {
    // Text for people.
  }
  return new ToolyardError(code, message, more);
}

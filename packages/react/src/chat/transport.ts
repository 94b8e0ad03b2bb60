import { DefaultChatTransport } from "ai";
import type { ToolyardMessage } from "./message.js";

export interface TransportOptions {
  gatewayUrl: string;
  headers: () => Promise<Record<string, string>>;
  /** What each request says beside the message. */
  body: () => Record<string, unknown>;
  /** Send the whole conversation: it began elsewhere. */
  whole: boolean;
}

/** Speaks to `/api/chat`. The gateway knows the conversation, so only the last message travels. */
export class GatewayTransport extends DefaultChatTransport<ToolyardMessage> {
  /** Whether the last reconnection found an answer on its way. */
  found = false;
  /** Asked when an answer is on its way, before it is told. */
  beforeReplay: (() => Promise<void>) | undefined;
  /** The next request repeats the last one, whose answer was lost. */
  repeats = false;

  constructor({ gatewayUrl, headers, body, whole }: TransportOptions) {
    super({
      api: `${gatewayUrl}/api/chat?metadata=on`,
      headers,
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId, headers: keys, body: more }) => {
        const { repeats } = this;
        this.repeats = false;
        const answered = messages.find((message) => message.id === messageId && message.role === "assistant");
        const said = whole ? { messages } : { message: trigger === "submit-message" && answered ? answered : messages.at(-1) };
        // With the id of a user's message it would be an edit.
        const named = repeats && !answered ? {} : { messageId };
        return { headers: keys ?? {}, body: { ...body(), ...more, id, ...said, trigger, ...named } };
      },
      prepareReconnectToStreamRequest: ({ id, headers: keys }) => ({
        api: `${gatewayUrl}/api/chat/${encodeURIComponent(id)}/stream?metadata=on`,
        headers: keys ?? {},
      }),
    });
  }

  override async reconnectToStream(
    ...options: Parameters<DefaultChatTransport<ToolyardMessage>["reconnectToStream"]>
  ): ReturnType<DefaultChatTransport<ToolyardMessage>["reconnectToStream"]> {
    this.found = false;
    const stream = await super.reconnectToStream(...options);
    this.found = stream !== null;
    const { beforeReplay } = this;
    this.beforeReplay = undefined;
    if (stream) await beforeReplay?.();
    return stream && atOnce(stream);
  }
}

/** Silence after which a replay counts as told. */
const QUIET_MS = 30;

/**
 * Gives what a stream has to say at its beginning in one go. A replay begins
 * with an empty message: without this, people see it vanish and grow again.
 */
export function atOnce<Chunk>(stream: ReadableStream<Chunk>): ReadableStream<Chunk> {
  const reader = stream.getReader();
  let held: Chunk[] | undefined = [];
  return new ReadableStream<Chunk>({
    async start(controller) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const release = () => {
        clearTimeout(timer);
        held?.forEach((chunk) => controller.enqueue(chunk));
        held = undefined;
      };
      const read = async () => {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          if (!held) {
            controller.enqueue(value);
            continue;
          }
          held.push(value);
          clearTimeout(timer);
          timer = setTimeout(release, QUIET_MS);
        }
        release();
        controller.close();
      };
      void read().catch((thrown: unknown) => {
        release();
        controller.error(thrown);
      });
    },
    async cancel(reason) {
      held = undefined;
      await reader.cancel(reason);
    },
  });
}

// What a program does with the types that openapi-typescript makes of the document. scripts/openapi compiles it: no cast
// may be necessary.
import type { paths, webhooks } from "./puntuale";

type Answer<T> = T extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : never;
type Started = Answer<paths["/api/start/{id_sequenza}"]["post"]>;

export function messagesOf(started: Started): string[] {
  return started.id ?? [];
}

export function textsOf(preview: Started): string[] {
  return (preview.messages ?? []).map((message) => `${message.invio_previsto}: ${message.contenuto}`);
}

type Event<T extends keyof webhooks> = webhooks[T] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;

export function told(event: Event<"message.sent"> | Event<"reply.received"> | Event<"session.unlinked">): string {
  switch (event.type) {
    case "message.sent":
      return event.data.phone + (event.data.reference ?? "");
    case "reply.received":
      return event.data.text + (event.data.media?.name ?? "");
    case "session.unlinked":
      return event.data.name;
  }
}

export function repliesIn(feed: Answer<paths["/api/events"]["get"]>): string[] {
  return feed.events.flatMap((event) => (event.type === "reply.received" ? [`${event.seq}: ${event.data.text}`] : []));
}

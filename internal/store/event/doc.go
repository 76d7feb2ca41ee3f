// Package event stores events: it numbers the facts of the outbox, and makes one delivery of each event for each
// webhook that wants it. It reads events for the feed and for internal/delivery, which sends the deliveries.
//
// A client's stream is its row of the table event_stream, with the last number and the wanted types of events. A
// numberer locks this row. It numbers the facts that it sees, in the order of the facts' ids and without gaps. It also
// makes the deliveries for webhooks that want these events. A reader that sees a number also sees all lower numbers. A
// number is never used again. After a restore, or after a failover that may have lost commits, numbers continue far
// beyond the last number. Feeds and webhooks read only events that have a number.
//
// Each webhook has an owner, the node that sends to it. Only the owner reads the webhook's due deliveries, so this read
// needs no lock and no write. The owner must have a lease, as in package fleet. When the lease has ended, another node
// takes over.
//
// The subject of an event is read when the event is sent, so an erasure also affects waiting events.
//
// # The order of locks
//
// These locks come after the message and after the client's row: partner, webhook by id, stream by client, delivery by
// key.
package event

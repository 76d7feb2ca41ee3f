// Package event makes events of facts, and gives them to feeds and webhooks.
//
// A numberer locks a client's stream. It numbers the facts that it sees by their ids, without gaps, and makes the deliveries of the webhooks
// that want them. A reader that saw a number also sees all lower ones. A number is never used again: a restored installation, and one after a
// failover that may have lost commits, go on far beyond. Feeds and webhooks read numbered events only.
//
// A webhook has an owner, the node that sends for it. Only the owner reads its due deliveries, so reading them writes nothing. The owner holds
// a lease, as in package fleet. Another node takes over once that has ended.
//
// What an event tells of its subject is read when it is told, so an erasure reaches it.
//
// # The order of locks
//
// These come after the message, and after the client's row: partner, webhook by id, stream by client, delivery by key.
package event

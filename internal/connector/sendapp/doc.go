// Package sendapp is the way out through a gateway: an HTTP service of SendApp's family (SendApp Cloud, Waziper, Stackposts) that holds the
// number.
//
// The gateway does not accept a message id from us, and the connector cannot look up a message at the gateway. An
// answer that is lost, or that says nothing, leaves a message uncertain, and the connector never repeats it. Two things
// settle such a message later: the echo of the sent message on the webhook, or a person. Acks (delivered, read) name
// messages by the gateway's own ids, which the connector keeps beside each message.
//
// A gateway does not sign what it posts to the webhook. Therefore the webhook's address is secret, and the connector
// takes only posts that name this session's instance id. The gateway may post each event twice.
package sendapp

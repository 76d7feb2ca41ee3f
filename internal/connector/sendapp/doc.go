// Package sendapp sends through a gateway. A gateway is an HTTP service of SendApp's family (SendApp Cloud, Waziper,
// Stackposts), to which the client's number is linked.
//
// The gateway accepts no message id from us, and the connector cannot look up a message at the gateway. If an answer is
// lost, or does not show what happened, the message is uncertain. Then it is sent again only if its step allows a
// resend. Later an echo on the webhook proves that the message was sent, or a person decides about the message. An ack
// (delivered, read) contains the network's id of its message. Therefore the connector stores the network's id of each
// message.
//
// A gateway does not sign its requests to the webhook. Therefore the webhook's address is secret, and the connector
// accepts only requests with this session's instance id. The gateway may send each event twice.
package sendapp

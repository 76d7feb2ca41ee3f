// Package sendapp is the way out through a gateway: an HTTP service of SendApp's family (SendApp Cloud, Waziper, Stackposts) that holds the
// number.
//
// The gateway takes no id of ours, and the connector cannot look up a message there. An answer that is lost, or that says nothing, leaves a
// message uncertain, and the connector never repeats it. Two things settle such a message later: the echo of the sent message on the
// webhook, or a person. Acks (delivered, read) come by the gateway's own ids, which the connector keeps beside each message.
//
// The webhook is not signed. Its address is secret, the instance is compared, and each event may come twice.
package sendapp

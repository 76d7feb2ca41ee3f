// Package deviceclient is the client's half of docs/device.md. It links a program as a device, takes messages, hands each
// to a command and reports what came of it.
//
// A crash at any moment neither loses a report nor runs the command twice for one message. The journal ([Journal]) is
// written first: the id of a take before the call, "begun" before the command starts, a report before it is sent. After a
// crash what was begun is reported unknown, because nobody knows how far the command came.
package deviceclient

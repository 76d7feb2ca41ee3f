// Package deviceclient is the client's half of docs/device.md. It links a program as a device, takes messages, gives each
// to a command, and reports the outcome.
//
// A crash at any moment neither loses a report nor runs the command twice for one message. The journal ([Journal]) is
// written first: the id of a take before the call, "begun" before the command starts, a report before it is sent. After a
// crash a begun message is reported unknown, because nobody knows how far the command came.
package deviceclient

// Package link replaces the addresses in texts of messages by links of the service, and counts who follows them.
//
// A link is made when its message's contents are read to be sent, so a start costs nothing. Its row is on disk before the
// contents are handed out. The key is the step of the run: whoever reads the contents again, after a restart, for a
// retry or for a message that a person sent again, finds the same links.
package link

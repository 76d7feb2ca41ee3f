// Package chatwoot connects sessions with Chatwoot, a help desk in which several people answer. A link joins a session
// with an inbox of the channel API. A message from a person becomes an incoming message of the inbox. A message that
// Puntuale sends becomes a private note, once the person has a conversation. A message that an agent writes in the
// conversation is sent to the person as a single send.
//
// The requests follow Chatwoot's Application API, https://developers.chatwoot.com, as of version 4.
package chatwoot

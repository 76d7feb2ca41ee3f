// Package chatwoot hands conversations over to Chatwoot, a help desk where several people answer. A link joins a session with an inbox of
// the channel API. What a person writes becomes an incoming message of the inbox. What we send stands beside it as a private note, once the
// person has a conversation. What an agent writes there goes to the person as a single message.
//
// The calls follow Chatwoot's Application API, https://developers.chatwoot.com, as of version 4.
package chatwoot

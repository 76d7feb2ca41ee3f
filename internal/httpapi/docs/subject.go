package docs

import (
	_ "embed"
	"strings"
)

// Introduction is the first part of the document and of the page, in Markdown.
//
//go:embed introduction.md
var Introduction string

// Subject groups the operations about one thing. Its name is the operations' tag.
type Subject struct {
	Name, Description string
	paths             []string // the beginnings of the operations' paths
}

// Subjects are in the order in which integrators use them.
var Subjects = []Subject{
	{"Start and stop", "Start a sequence for a person, and stop it.", []string{"/api/start/", "/api/stop/"}},
	{"Bookings", "Appointments, whose messages follow them.", []string{"/api/bookings"}},
	{"Calendars", "Feeds of appointments, whose entries become bookings.", []string{"/api/calendars"}},
	{"Messages", "Send one message, and see, cancel or repeat messages.", []string{"/api/messages"}},
	{"Results", "What became of messages, in numbers, and the people behind them.", []string{"/api/results"}},
	{"Sequences", "What is sent, and when.", []string{"/api/sequences", "/api/session/"}},
	{"Templates", "Contents that sequences and messages name.", []string{"/api/templates"}},
	{"Files", "Pictures, films and documents to send.", []string{"/api/files"}},
	{"Sessions", "The numbers that send, and how each is linked.", []string{"/api/sessions"}},
	{"Sandbox", "The simulated network, to try everything without a number.", []string{"/api/sandbox/"}},
	{"Events", "The feed of events. Webhooks push the same events.", []string{"/api/events"}},
	{"Webhooks", "Your addresses that get events, and what was delivered.", []string{"/api/webhooks"}},
	{"Replies", "What people write.", []string{"/api/replies"}},
	{"Contacts", "The people that you know, with fields and tags. Also all data about a person, and its erasure.", []string{"/api/contacts"}},
	{"Consent", "What people agreed to, with the proof.", []string{"/api/contacts/consent"}},
	{"Blacklist", "Numbers that get nothing.", []string{"/api/blacklist"}},
	{"Search", "People, messages and everything else by one text.", []string{"/api/search"}},
	{"Campaigns", "One content to many people, at a pace.", []string{"/api/campaigns"}},
	{"Automations", "Rules: when something happens, they act.", []string{"/api/automations"}},
	{"Chatwoot", "A session's conversations in an inbox of Chatwoot.", []string{"/api/sessions/{id}/chatwoot"}},
	{"Settings", "What a client decided about the people that it writes to.", []string{"/api/settings"}},
	{"Statements", "What was used in a month, what the network bills for it, and what it may cost.", []string{"/api/statements", "/api/budget"}},
	{"Clients", "For partners: accounts of clients.", []string{"/api/client"}},
	{"Plans", "For partners: values that many clients get.", []string{"/api/plans"}},
	{"Keys", "For partners: the keys of a client.", []string{"/api/client/{id}/keys"}},
	{"Devices", "For programs that send from a phone.", []string{"/device", "/api/sessions/{id}/devices"}},
	{"After a restore", "What to do with messages that may have left before a backup was restored.", []string{"/api/messages/unknown", "/api/messages/held"}},
}

// SubjectOf returns the name of the subject of an operation's path, or "" if there is none. If several paths match, the
// longest one decides.
func SubjectOf(path string) (name string) {
	longest := 0
	for _, s := range Subjects {
		for _, p := range s.paths {
			if strings.HasPrefix(path, p) && len(p) > longest {
				name, longest = s.Name, len(p)
			}
		}
	}
	return name
}

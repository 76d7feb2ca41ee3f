package outside

import "time"

// Kind is a kind of data that this program reads from outside, with its bounds.
type Kind struct {
	Name     string
	MaxBytes int64         // the most bytes, after decompression
	MaxJSON  int           // the most JSON values, nested at most maxDepth deep; 0: the data are not decoded
	Within   time.Duration // how long the data may take after their header
	Free     int64         // so many bytes are not charged; see [MemoryGrants]
	Payer    string        // who is charged for the memory, or what bounds it otherwise
}

// maxDepth bounds how deeply a JSON answer may be nested. Real answers have fewer than ten levels.
const maxDepth = 64

// Payers of the table.
const (
	payClient = "the client"
	payDisk   = "nobody: the data go to a file, a piece at a time"
	paySender = "nobody: few requests run at once"
)

// All kinds of data that are read from outside. Free is for answers that say whether a message was sent: a server that
// is short of memory must not lose them.
var (
	// Chatwoot answers with lists: all inboxes of an account, or the conversations of a person.
	Chatwoot = Kind{Name: "answer of a Chatwoot server", MaxBytes: 4 << 20, MaxJSON: 100_000, Within: 30 * time.Second, Payer: payClient}
	// Gateway answers with a picture of a QR code at most.
	Gateway = Kind{Name: "answer of a gateway", MaxBytes: 1 << 20, MaxJSON: 20_000, Within: 90 * time.Second, Free: 64 << 10, Payer: payClient}
	// Graph answers with a page of templates at most.
	Graph = Kind{Name: "answer of Meta's Graph API", MaxBytes: 1 << 20, MaxJSON: 50_000, Within: 30 * time.Second, Free: 64 << 10, Payer: "the call that waits; else nobody: the server is Meta's"}
	// Webhook answers are shown to people; only their beginning is stored. Only the status decides about success.
	Webhook = Kind{Name: "answer of a webhook's receiver", MaxBytes: 17 << 10, Within: time.Second, Free: 17 << 10, Payer: paySender}
	// Push services answer with a status. The library reads nothing else.
	Push = Kind{Name: "answer of a push service", MaxBytes: 4 << 10, Within: 5 * time.Second, Free: 4 << 10, Payer: paySender}
	// WhatsApp is what the library for linked numbers reads by HTTP: a page with a version, and answers about files.
	WhatsApp = Kind{Name: "answer of WhatsApp's servers", MaxBytes: 4 << 20, Within: time.Minute, Payer: paySender}
	// ReplyFile is a file in a person's message. An encrypted file is a few bytes longer than its content.
	ReplyFile = Kind{Name: "file of a reply", MaxBytes: 100<<20 + 64, Within: 2 * time.Minute, Payer: payDisk}
	// Mail is all that a mail server writes while one e-mail is sent.
	Mail = Kind{Name: "answers of a mail server", MaxBytes: 256 << 10, Within: 40 * time.Second, Free: 256 << 10, Payer: paySender}
	// Command is what a command in a person's terminal reads from our own server.
	Command = Kind{Name: "answer to a command", MaxBytes: 32 << 20, MaxJSON: 2_000_000, Within: time.Minute, Payer: "the person's own computer"}
	// CommandFile is a file that a command stores: the refused rows of a campaign.
	CommandFile = Kind{Name: "file of a command", MaxBytes: 1 << 30, Within: 30 * time.Minute, Payer: payDisk}
)

// Kinds is the table of all kinds. Package media reads the files of callers' addresses, within a budget of disk space.
// Package admission reads the bodies of requests. DNS answers have at most 64 KiB.
var Kinds = []*Kind{&Chatwoot, &Gateway, &Graph, &Webhook, &Push, &WhatsApp, &ReplyFile, &Mail, &Command, &CommandFile}

package outside

import "time"

// Kind is a kind of data that this program reads from outside, with its bounds.
type Kind struct {
	Name     string
	MaxBytes int64         // the most bytes, after decompression
	MaxJSON  int           // the most JSON values, nested at most maxDepth deep; 0: the data are not decoded
	Within   time.Duration // how long the data may take after their header
	Free     int64         // so many bytes are read even if the payer has no memory left; they are charged, too
	Payer    Payer         // who is charged for the memory
}

// maxDepth bounds how deeply a JSON answer may be nested. Real answers have fewer than ten levels.
const maxDepth = 64

// Payer says who is charged for the memory of an answer.
type Payer string

// Payers of the table. Only data of PayOwner take memory of this server. Such data cannot be read without a
// [puntuale.MemoryGrant] in the context.
const (
	// PayOwner is the call that waits for the answer, else the client or partner whose work it is; see [MemoryGrants].
	PayOwner Payer = "the call that waits, else the client or partner whose work it is"
	PayDisk  Payer = "nobody: the data go to a file, a piece at a time"
	PayHuman Payer = "the person's own computer"
)

// All kinds of data that are read from outside. Free is for answers that say whether something was sent: a payer that
// is short of memory must not lose them.
var (
	// Chatwoot answers with lists: all inboxes of an account, or the conversations of a person.
	Chatwoot = Kind{Name: "answer of a Chatwoot server", MaxBytes: 4 << 20, MaxJSON: 100_000, Within: 30 * time.Second, Payer: PayOwner}
	// Gateway answers with a picture of a QR code at most.
	Gateway = Kind{Name: "answer of a gateway", MaxBytes: 1 << 20, MaxJSON: 20_000, Within: 90 * time.Second, Free: 64 << 10, Payer: PayOwner}
	// Graph answers with a page of templates at most.
	Graph = Kind{Name: "answer of Meta's Graph API", MaxBytes: 1 << 20, MaxJSON: 50_000, Within: 30 * time.Second, Free: 64 << 10, Payer: PayOwner}
	// Webhook answers are shown to people; only their beginning is stored. Only the status decides about success. So an
	// answer without memory is not read.
	Webhook = Kind{Name: "answer of a webhook's receiver", MaxBytes: 17 << 10, Within: time.Second, Payer: PayOwner}
	// Push services answer with a status. The library reads nothing else.
	Push = Kind{Name: "answer of a push service", MaxBytes: 4 << 10, Within: 5 * time.Second, Payer: PayOwner}
	// WhatsApp is what the library for linked numbers reads by HTTP: a page with a version, and answers about files.
	WhatsApp = Kind{Name: "answer of WhatsApp's servers", MaxBytes: 4 << 20, Within: time.Minute, Free: 64 << 10, Payer: PayOwner}
	// ReplyFile is a file in a person's message. An encrypted file is a few bytes longer than its content.
	ReplyFile = Kind{Name: "file of a reply", MaxBytes: 100<<20 + 64, Within: 2 * time.Minute, Payer: PayDisk}
	// Calendar is a feed of appointments. It is read a piece at a time; [puntuale.MaxCalendarEntries] bounds what is kept.
	Calendar = Kind{Name: "feed of a calendar", MaxBytes: 20 << 20, Within: 30 * time.Second, Payer: PayOwner}
	// Mail is all that a mail server writes while one e-mail is sent. If a part of it were refused, the e-mail would be sent
	// again.
	Mail = Kind{Name: "answers of a mail server", MaxBytes: 256 << 10, Within: 40 * time.Second, Free: 256 << 10, Payer: PayOwner}
	// Authority answers with a chain of certificates at most. Without certificates nobody can call, so it needs no free memory.
	Authority = Kind{Name: "answer of an authority for certificates", MaxBytes: 256 << 10, Within: 30 * time.Second, Free: 256 << 10, Payer: PayOwner}
	// Command is what a command in a person's terminal reads from our own server.
	Command = Kind{Name: "answer to a command", MaxBytes: 32 << 20, MaxJSON: 2_000_000, Within: time.Minute, Payer: PayHuman}
	// CommandFile is a file that a command stores: the refused rows of a campaign.
	CommandFile = Kind{Name: "file of a command", MaxBytes: 1 << 30, Within: 30 * time.Minute, Payer: PayDisk}
)

// Kinds is the table of all kinds. Package media reads the files of callers' addresses, within a budget of disk space.
// Package admission reads the bodies of requests. DNS answers have at most 64 KiB.
var Kinds = []*Kind{&Chatwoot, &Gateway, &Graph, &Webhook, &Push, &WhatsApp, &ReplyFile, &Calendar, &Mail, &Authority, &Command, &CommandFile}

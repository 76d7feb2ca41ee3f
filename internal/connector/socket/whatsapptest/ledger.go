//go:build !nosocket

package whatsapptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"
)

// Message is a decrypted message, as a phone shows it.
type Message struct {
	Phone      string    `json:"phone"`       // the number whose phone shows the message
	Chat       string    `json:"chat"`        // number of the other person, or the group's id
	From       string    `json:"from"`        // number of the sender
	FromDevice int       `json:"from_device"` // which of the sender's devices sent the message
	FromMe     bool      `json:"from_me"`     // the phone's owner wrote the message on another device
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`             // text, image, video, audio, voice, document, location, contact, reaction or other
	Text       string    `json:"text"`             // the text or the caption
	Quoted     string    `json:"quoted,omitempty"` // id of the message that this message answers
	FileName   string    `json:"file_name,omitempty"`
	MimeType   string    `json:"mime_type,omitempty"`
	FileLength uint64    `json:"file_length,omitempty"`
	Seconds    uint32    `json:"seconds,omitempty"` // the length of a video or audio
	Latitude   float64   `json:"latitude,omitempty"`
	Longitude  float64   `json:"longitude,omitempty"`
	Place      string    `json:"place,omitempty"` // name and address of a location
	At         time.Time `json:"at"`              // the server's time
	Seen       time.Time `json:"seen"`            // when the phone first showed the message
	Retries    int       `json:"retries"`         // how often the phone requested the message again
	Copies     int       `json:"copies"`          // how often a message with this id arrived; an app shows the message once

	raw *waE2E.Message
}

// Raw returns the message as it was decrypted, or nil if the ledger was read from a file.
func (m Message) Raw() *waE2E.Message { return m.raw }

// Ledger contains the messages that a network's phones have shown, oldest first. Each message is listed once, with its
// number of copies.
type Ledger struct {
	n       *Network
	entries []Message
	places  map[arrival]int // the position of each message in entries
	file    *os.File
}

// Ledger returns the network's ledger.
func (n *Network) Ledger() *Ledger { return n.ledger }

// All lists all messages that the phones have shown so far.
func (l *Ledger) All() []Message {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	return slices.Clone(l.entries)
}

// Keep writes to a file: first the ledger's present entries, and then every later arrival. Each arrival is a JSON
// document on one line. The line is on the disk before the phone acknowledges the message.
func (l *Ledger) Keep(path string) error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the ledger's file: %w", err)
	}
	l.file = file
	l.n.t.Cleanup(func() { file.Close() })
	for _, m := range l.entries {
		if err := l.write(m); err != nil {
			return err
		}
	}
	return nil
}

// ReadLedger reads a ledger's file. It returns each message once, with its number of copies.
func ReadLedger(path string) ([]Message, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the ledger's file: %w", err)
	}
	defer file.Close()
	read := &Ledger{places: map[arrival]int{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var m Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("read the ledger's file: %w", err)
		}
		entry, _ := read.place(m)
		*entry = m
	}
	return read.entries, lines.Err()
}

// arrival identifies a message: two arrivals with the same values are one message.
type arrival struct{ phone, chat, from, id string }

// place returns a message's entry, and makes the entry if there is none.
func (l *Ledger) place(m Message) (entry *Message, made bool) {
	key := arrival{m.Phone, m.Chat, m.From, m.ID}
	i, found := l.places[key]
	if !found {
		i = len(l.entries)
		l.places[key], l.entries = i, append(l.entries, m)
	}
	return &l.entries[i], !found
}

// add records an arrival. The caller holds n.mu.
func (l *Ledger) add(m Message) {
	entry, made := l.place(m)
	if made {
		entry.Seen = time.Now()
	}
	entry.Copies++
	m = *entry
	if l.file != nil {
		if err := l.write(m); err != nil {
			l.n.misunderstood("write the ledger: %v", err)
		}
	}
	l.n.notify()
}

func (l *Ledger) write(m Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return l.file.Sync()
}

// read returns what a phone shows of a decrypted message. It returns false if the phone shows nothing.
func (n *Network) read(phone *Account, event *events.Message) (Message, bool) {
	info, content := event.Info, event.Message
	m := Message{
		Phone: phone.number, Chat: n.chatName(info.Chat.ToNonAD()), From: n.chatName(info.Sender.ToNonAD()), FromDevice: int(info.Sender.Device),
		FromMe: info.IsFromMe, ID: info.ID, At: info.Timestamp, Retries: event.RetryCount, raw: content,
	}
	quoted := func(c *waE2E.ContextInfo) { m.Quoted = c.GetStanzaID() }
	switch {
	case content.Conversation != nil:
		m.Kind, m.Text = "text", content.GetConversation()
	case content.ExtendedTextMessage != nil:
		m.Kind, m.Text = "text", content.GetExtendedTextMessage().GetText()
		quoted(content.GetExtendedTextMessage().GetContextInfo())
	case content.ImageMessage != nil:
		i := content.GetImageMessage()
		m.Kind, m.Text, m.MimeType, m.FileLength = "image", i.GetCaption(), i.GetMimetype(), i.GetFileLength()
		quoted(i.GetContextInfo())
	case content.VideoMessage != nil:
		v := content.GetVideoMessage()
		m.Kind, m.Text, m.MimeType, m.FileLength, m.Seconds = "video", v.GetCaption(), v.GetMimetype(), v.GetFileLength(), v.GetSeconds()
	case content.AudioMessage != nil:
		a := content.GetAudioMessage()
		m.Kind, m.MimeType, m.FileLength, m.Seconds = "audio", a.GetMimetype(), a.GetFileLength(), a.GetSeconds()
		if a.GetPTT() {
			m.Kind = "voice"
		}
	case content.DocumentMessage != nil:
		d := content.GetDocumentMessage()
		m.Kind, m.Text, m.MimeType, m.FileLength, m.FileName = "document", d.GetCaption(), d.GetMimetype(), d.GetFileLength(), d.GetFileName()
	case content.LocationMessage != nil:
		p := content.GetLocationMessage()
		m.Kind, m.Latitude, m.Longitude, m.Place = "location", p.GetDegreesLatitude(), p.GetDegreesLongitude(), p.GetName()
		if p.GetAddress() != "" {
			m.Place += ", " + p.GetAddress()
		}
	case content.ContactMessage != nil:
		m.Kind, m.Text = "contact", content.GetContactMessage().GetDisplayName()
	case content.ReactionMessage != nil:
		m.Kind, m.Text, m.Quoted = "reaction", content.GetReactionMessage().GetText(), content.GetReactionMessage().GetKey().GetID()
	case content.ProtocolMessage != nil, content.SenderKeyDistributionMessage != nil:
		return m, false
	default:
		m.Kind = "other"
	}
	return m, true
}

// Text returns a function that matches messages with this text.
func Text(words string) func(Message) bool {
	return func(m Message) bool { return m.Text == words }
}

// ID returns a function that matches the message with this id.
func ID(id string) func(Message) bool {
	return func(m Message) bool { return m.ID == id }
}

package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// Person gives access to the data that a client has about one person.
type Person struct {
	puntuale.Person // the number, and the number that an earlier version made of the same text
	c               *Client
}

// Person returns the person with a phone number. The person need not be a contact. found contains the faults that the
// calling package already found in the request. Codes: invalid.
func (c *Client) Person(_ context.Context, phone string, found ...puntuale.Fault) (*Person, error) {
	f := request.Faults(found)
	return &Person{c.person(&f, "body.phone", phone), c}, f.Err()
}

// FindContacts returns the contacts whose names fit a text best, at most limit; typing errors are forgiven. more reports
// whether there may be others.
func (c *Client) FindContacts(ctx context.Context, text string, limit int) (found []puntuale.Contact, more bool, err error) {
	found, more, err = c.tenant.FindContacts(ctx, text, limit)
	if err != nil {
		return nil, false, fmt.Errorf("find contacts: %w", err)
	}
	return found, more, nil
}

// FindNamed returns the newest sequences, campaigns and templates with the words of a text in their names, or with the text
// as their id, at most limit of each.
func (c *Client) FindNamed(ctx context.Context, text string, limit int) (map[puntuale.NamedKind][]puntuale.NamedItem, error) {
	found, err := c.tenant.FindNamed(ctx, text, limit)
	if err != nil {
		return nil, fmt.Errorf("find by name: %w", err)
	}
	return found, nil
}

// personMessage is a message to a person, as WriteTo encodes it.
type personMessage struct {
	ID       puntuale.MessageID `json:"id"`
	State    string             `json:"state"`
	Origin   string             `json:"origin"`
	Sequence string             `json:"sequence,omitempty"`
	Name     string             `json:"name,omitempty"`
	Subject  string             `json:"reference,omitempty"`
	Received time.Time          `json:"accepted_at"`
	Due      time.Time          `json:"planned_at"`
	Left     time.Time          `json:"sent_at,omitzero"`
	Read     time.Time          `json:"read_at,omitzero"`
	Content  puntuale.Content   `json:"content"`
	Request  string             `json:"request"`
}

type personReply struct {
	ID      puntuale.ReplyID     `json:"id"`
	Session puntuale.SessionID   `json:"session"`
	At      time.Time            `json:"at"`
	Own     bool                 `json:"written_by_client,omitempty"`
	Kind    puntuale.ReplyKind   `json:"kind"`
	Text    string               `json:"text"`
	File    string               `json:"file,omitempty"`
	Kept    *puntuale.KeptFile   `json:"kept,omitempty"`
	Effect  puntuale.ReplyEffect `json:"effect,omitempty"`
}

type personConsent struct {
	Purpose string    `json:"purpose"`
	Change  string    `json:"change"`
	Source  string    `json:"source"`
	Words   string    `json:"words,omitempty"`
	Message string    `json:"message,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
	Applied bool      `json:"applied"`
}

// personPage is how many rows one query reads.
const personPage = "200"

// WriteTo writes all stored data of the person to out, as one JSON object. It calls alive before each page that it
// reads. After an error the object is incomplete.
func (p *Person) WriteTo(ctx context.Context, out io.Writer, alive func()) error {
	w := &personWriter{Writer: bufio.NewWriter(out), alive: alive}
	w.member("phone", p.Names[0])
	blocked, err := p.c.BlacklistedAmong(ctx, p.Names...)
	if err != nil {
		return err
	}
	w.member("blacklisted", len(blocked) > 0)
	if err := p.writeLists(ctx, w); err != nil {
		return err
	}
	if err := p.writeOthers(ctx, w); err != nil {
		return err
	}
	w.text("}\n")
	if w.err == nil {
		w.err = w.Flush()
	}
	return w.err
}

func (p *Person) writeLists(ctx context.Context, w *personWriter) error {
	if err := writePages(w, "consent", p.Names, func(phone string, page request.Page) ([]personConsent, string, error) {
		rows, next, err := p.c.Consents(ctx, phone, page)
		return convert(rows, func(r puntuale.Consent) personConsent {
			return personConsent{r.Purpose.String(), r.Change.String(), r.Source, r.Words, r.Message, r.EnteredBy, r.At, r.Applied}
		}), next, err
	}); err != nil {
		return err
	}
	if err := writePages(w, "messages", p.Names, func(phone string, page request.Page) ([]personMessage, string, error) {
		rows, next, err := p.c.Messages(ctx, MessageQuery{Phone: phone, Page: page})
		return convert(rows, func(m puntuale.MessageDetail) personMessage {
			return personMessage{m.ID, m.State.String(), string(m.Origin), m.SequenceName, m.RunName, m.Reference, m.Received, m.Due, m.LeftAt(), m.Read, m.Content, string(m.Request)}
		}), next, err
	}); err != nil {
		return err
	}
	return writePages(w, "replies", p.Names, func(phone string, page request.Page) ([]personReply, string, error) {
		rows, next, err := p.c.Thread(ctx, phone, page)
		return convert(rows, func(y puntuale.Reply) personReply {
			r := personReply{ID: y.ID, Session: y.Session, At: y.At, Own: y.Own, Kind: y.Kind, Text: y.Text, Kept: y.Kept, Effect: y.Effect}
			if y.Media != nil {
				r.File = y.Media.Name + " (" + y.Media.Type + ", " + strconv.FormatInt(y.Media.Size, 10) + ")"
			}
			return r
		}), next, err
	})
}

// writeOthers writes all other data that an erasure would remove.
func (p *Person) writeOthers(ctx context.Context, w *personWriter) error {
	var open string
	err := p.c.tenant.PersonalData(ctx, p.Person, func(member string, rows []json.RawMessage) error {
		if member != open {
			if open != "" {
				w.text("]")
			}
			w.name(member)
			w.text("[")
			open, w.rows = member, 0
		}
		w.alive()
		for _, row := range rows {
			w.row(row)
		}
		return w.err
	})
	w.text("]")
	return err
}

// personWriter writes the members of one JSON object, and stores the first error.
type personWriter struct {
	*bufio.Writer
	alive   func()
	members int
	rows    int // of the list that is being written
	err     error
}

func (w *personWriter) text(s string) {
	if w.err == nil {
		_, w.err = w.WriteString(s)
	}
}

func (w *personWriter) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("write a person's data: %w", err)
	}
	w.text(string(text))
}

func (w *personWriter) name(name string) {
	w.text(map[bool]string{true: "{", false: ","}[w.members == 0])
	w.members++
	w.value(name)
	w.text(":")
}

func (w *personWriter) member(name string, v any) {
	w.name(name)
	w.value(v)
}

// row writes a row of a list.
func (w *personWriter) row(row any) {
	if w.rows++; w.rows > 1 {
		w.text(",")
	}
	w.value(row)
}

// writePages writes a list of rows as one member of the object. The number of rows has no limit.
func writePages[T any](w *personWriter, name string, phones []string, read func(phone string, page request.Page) ([]T, string, error)) error {
	w.name(name)
	w.text("[")
	w.rows = 0
	for cursor := ""; ; {
		rows, next, err := read(phones[0], request.Page{Limit: personPage, Cursor: cursor})
		if err != nil {
			return err
		}
		w.alive()
		for _, row := range rows {
			w.row(row)
		}
		if cursor = next; next == "" {
			phones = phones[1:]
		}
		if len(phones) == 0 || w.err != nil {
			w.text("]")
			return w.err
		}
	}
}

func convert[T, U any](rows []T, to func(T) U) []U {
	all := make([]U, len(rows))
	for i, row := range rows {
		all[i] = to(row)
	}
	return all
}

// Erase removes the data of a person, found by number, or of a group. It cancels the pending messages to the number,
// and removes the number and all texts from the client's data. Counts and charges remain. The call counts in the
// client's usage, but the daily cap never refuses it. After a failure, a repeat completes the erasure. found contains
// the faults that the calling package already found in the request. Codes: invalid; busy if a message to the number is
// in flight. A busy call does not count.
func (c *Client) Erase(ctx context.Context, phone string, found ...puntuale.Fault) (puntuale.ErasureResult, error) {
	f := request.Faults(found)
	person := c.person(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return puntuale.ErasureResult{}, err
	}
	if c.control.vault == nil {
		return puntuale.ErasureResult{}, errors.New("there is no vault to mark a number with")
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.ErasureResult{}, err
	}
	done, err := c.tenant.Erase(ctx, puntuale.Erasure{Person: person, Day: day, Now: now})
	if err != nil {
		return puntuale.ErasureResult{}, fmt.Errorf("erase: %w", err)
	}
	return done, nil
}

// Mark returns the keyed hash that replaces an erased person's number in a client's blacklist. Without the vault's key,
// nobody can find the number from this hash. Two clients have different hashes of the same number.
func Mark(v *auth.Vault, client puntuale.ClientID, phone string) string {
	return puntuale.MarkPrefix + v.Mark("blacklist", client.String(), phone)
}

// mark returns the result of [Mark] for this client, or "" if there is no vault.
func (c *Client) mark(phone string) string {
	if c.control.vault == nil {
		return ""
	}
	return Mark(c.control.vault, c.account.ID, phone)
}

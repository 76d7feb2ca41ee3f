package puntuale

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"
)

// ContactID names a contact.
type ContactID int64

func (id ContactID) String() string { return strconv.FormatInt(int64(id), 10) }

// Limits of contacts.
const (
	MaxContacts      = 1_000_000 // a client's
	MaxContactFields = 50
	MaxContactTags   = 50
	MaxTag           = 50 // characters
)

// ContactField is one value of a contact. The JSON form is what stores keep.
type ContactField struct {
	Kind  FieldKind `json:"kind"`
	Value string    `json:"value"` // a number as it was written; a date as "2006-01-02" or "2006-01-02T15:04"
}

// Contact is a person in a client's list.
type Contact struct {
	ID       ContactID
	Phone    string
	Name     string // also fills the field "nome"
	Language string // "it", "en" or another two-letter code; "": not known
	Source   string // where the contact came from
	Fields   map[string]ContactField
	Tags     []string // sorted
	Created  time.Time
	Changed  time.Time
}

// Merge returns the contact with the data of another one. Names, languages, sources and fields that the other one has
// replace the old values. Tags are added. It reports whether that changes anything.
func (c Contact) Merge(with Contact) (merged Contact, changed bool) {
	merged = c
	for _, text := range []struct{ to, from *string }{{&merged.Name, &with.Name}, {&merged.Language, &with.Language}, {&merged.Source, &with.Source}} {
		if *text.from != "" && *text.to != *text.from {
			*text.to, changed = *text.from, true
		}
	}
	merged.Fields = maps.Clone(c.Fields)
	for name, field := range with.Fields {
		if merged.Fields == nil {
			merged.Fields = map[string]ContactField{}
		}
		if old, there := merged.Fields[name]; !there || old != field {
			merged.Fields[name], changed = field, true
		}
	}
	merged.Tags = sortedTags(append(slices.Clone(c.Tags), with.Tags...))
	return merged, changed || len(merged.Tags) != len(c.Tags)
}

// Apply returns the contact with a patch, and reports whether that changes anything.
func (c Contact) Apply(p ContactPatch) (patched Contact, changed bool) {
	patched = c
	for _, text := range []struct{ to, from *string }{{&patched.Name, p.Name}, {&patched.Language, p.Language}, {&patched.Source, p.Source}} {
		if text.from != nil && *text.to != *text.from {
			*text.to, changed = *text.from, true
		}
	}
	patched.Fields = maps.Clone(c.Fields)
	for name, field := range p.Fields {
		old, there := patched.Fields[name]
		switch {
		case field == nil && there:
			delete(patched.Fields, name)
			changed = true
		case field != nil && (!there || old != *field):
			if patched.Fields == nil {
				patched.Fields = map[string]ContactField{}
			}
			patched.Fields[name], changed = *field, true
		}
	}
	tags := slices.Clone(c.Tags)
	if p.Tags != nil {
		tags = slices.Clone(*p.Tags)
	}
	tags = slices.DeleteFunc(sortedTags(append(tags, p.AddTags...)), func(tag string) bool { return slices.Contains(p.RemoveTags, tag) })
	patched.Tags = tags
	return patched, changed || !slices.Equal(tags, c.Tags)
}

func sortedTags(tags []string) []string {
	slices.Sort(tags)
	return slices.Compact(tags)
}

// Refusal says which limit the contact breaks; "": none.
func (c Contact) Refusal() ReasonCode {
	switch {
	case len(c.Fields) > MaxContactFields:
		return FaultContactTooManyFields
	case len(c.Tags) > MaxContactTags:
		return FaultContactTooManyTags
	}
	return ""
}

// ContactPatch changes a contact; nil leaves a member as it is. A field with a nil value is removed.
type ContactPatch struct {
	Name       *string
	Language   *string
	Source     *string
	Fields     map[string]*ContactField
	Tags       *[]string // replaces all
	AddTags    []string
	RemoveTags []string
}

// ContactFilter chooses contacts; all members that are set must hold.
type ContactFilter struct {
	Tag    string
	Phone  string   // a whole number, or with "*" at the end the beginning of a number
	Name   string   // words; each must begin a word of the name; case and accents do not matter
	Filled string   // a field that has a value
	Any    []string // the contact has at least one of these tags
}

// ContactBatch are contacts that become part of a client's list.
type ContactBatch struct {
	All []Contact // at most 1,000, sorted by phone, each phone once
	Now time.Time

	// Day is the day on which one call is counted; the cap never refuses it. Zero: no call is counted. With a Day, one
	// refused contact refuses the whole batch.
	Day Date
	Key *Idempotency // may be nil; its Answer gets the MergedContacts
}

// MergedContacts is the result of a merge.
type MergedContacts struct {
	All            []Contact // the contacts after the merge, in the given order; a refused contact has no ID
	Refused        map[int]ReasonCode
	Added, Changed int
}

// ContactStore changes a client's contacts.
type ContactStore interface {
	// MergeContacts adds contacts, or merges each into the one of its phone as [Contact.Merge] does. A merge without a
	// change writes nothing. A contact is refused if the list is full ([MaxContacts], exact under any concurrency), or
	// if it would break a limit. Codes, with a Day: quota_reached; invalid (too many fields or tags).
	MergeContacts(ctx context.Context, m ContactBatch) (MergedContacts, error)
	// UpdateContact counts one call, which the cap never refuses. Codes: not_found; invalid (too many fields or tags).
	UpdateContact(ctx context.Context, id ContactID, p ContactPatch, day Date, now time.Time) (Contact, error)
	// DeleteContact counts one call, which the cap never refuses. Codes: not_found.
	DeleteContact(ctx context.Context, id ContactID, day Date) error
	// CountCall counts the one call of an import, which takes several transactions. The cap never refuses it.
	CountCall(ctx context.Context, day Date) error
}

// ContactLists read a client's contacts.
type ContactLists interface {
	// Contacts lists contacts by id. With words of a name, or the beginning of a number, the order may be by name or
	// number. A page may be shorter than asked, even empty, so that it stays within 4 MiB and looks at 3,000 contacts
	// at most. Only the ten longest words of a name are used. Codes: invalid (the cursor).
	Contacts(ctx context.Context, f ContactFilter, p Page) ([]Contact, string, error)

	Contact(ctx context.Context, id ContactID) (Contact, error)                     // not_found
	ContactOf(ctx context.Context, phone string) (c Contact, found bool, err error) // by the number
	ContactsOf(ctx context.Context, phones []string) (map[string]Contact, error)    // the contacts that exist, by number; at most 1,000
	CountContacts(ctx context.Context, f ContactFilter, most int) (int, error)      // at most so many
	ContactTags(ctx context.Context) (map[string]int, error)                        // how many contacts have each tag; at most 1,000 tags
}

// CalledRun has the data of a run from which a contact is made.
type CalledRun struct {
	ID      RunID
	Phone   string // "" once the person was erased
	Origin  Origin
	Zone    string
	Request []byte // empty if it was blanked, or is longer than 64 KiB
}

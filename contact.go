package puntuale

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// ContactID names a contact.
type ContactID int64

func (id ContactID) String() string { return strconv.FormatInt(int64(id), 10) }

// Limits of contacts.
const (
	MaxContacts      = 1_000_000 // contacts of one client
	MaxContactFields = 50
	MaxContactTags   = 50
	MaxTag           = 50 // characters
)

// ContactField is one value of a contact. The store writes it as JSON.
type ContactField struct {
	Kind  FieldKind `json:"kind"`
	Value string    `json:"value"` // a number as it was written, or a date as "2006-01-02" or "2006-01-02T15:04"
}

// Text returns the value in the form in which messages print it. A date is 28/02/2027, or 28/02/2027 10:30.
func (f ContactField) Text() string {
	if f.Kind == FieldDate {
		for _, layout := range [][2]string{{time.DateOnly, "02/01/2006"}, {"2006-01-02T15:04", "02/01/2006 15:04"}} {
			if at, err := time.Parse(layout[0], f.Value); err == nil {
				return at.Format(layout[1])
			}
		}
	}
	return f.Value
}

// Contact is a person in a client's list.
type Contact struct {
	ID       ContactID
	Phone    string
	Name     string // also the value of the field "nome"
	Language string // "it", "en" or another two-letter code; "": not known
	Source   string // where the contact came from
	Fields   map[string]ContactField
	Tags     []string // sorted
	Created  time.Time
	Changed  time.Time
}

// Merge returns the contact c after adding the data of a second contact, the argument with. A name, language, source or
// field of the second contact replaces the value in c. The tags of the second contact are added. The result changed
// reports whether the result differs from c.
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
		if old, found := merged.Fields[name]; !found || old != field {
			merged.Fields[name], changed = field, true
		}
	}
	merged.Tags = sortedTags(append(slices.Clone(c.Tags), with.Tags...))
	return merged, changed || len(merged.Tags) != len(c.Tags)
}

// Apply returns the contact after the patch. The result changed reports whether the result differs from c.
func (c Contact) Apply(p ContactPatch) (patched Contact, changed bool) {
	patched = c
	for _, text := range []struct{ to, from *string }{{&patched.Name, p.Name}, {&patched.Language, p.Language}, {&patched.Source, p.Source}} {
		if text.from != nil && *text.to != *text.from {
			*text.to, changed = *text.from, true
		}
	}
	patched.Fields = maps.Clone(c.Fields)
	for name, field := range p.Fields {
		old, found := patched.Fields[name]
		switch {
		case field == nil && found:
			delete(patched.Fields, name)
			changed = true
		case field != nil && (!found || old != *field):
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

// Refusal returns the code of the limit that the contact exceeds, or "".
func (c Contact) Refusal() ReasonCode {
	switch {
	case len(c.Fields) > MaxContactFields:
		return FaultContactTooManyFields
	case len(c.Tags) > MaxContactTags:
		return FaultContactTooManyTags
	}
	return ""
}

// ContactPatch changes a contact. A nil member changes nothing. A field with a nil value is removed.
type ContactPatch struct {
	Name       *string
	Language   *string
	Source     *string
	Fields     map[string]*ContactField
	Tags       *[]string // replaces all tags
	AddTags    []string
	RemoveTags []string
}

// ContactFilter chooses the contacts that match all its set members.
type ContactFilter struct {
	Newest bool // lists by id or by one tag begin with the newest contact; other lists ignore it
	Tag    string
	Phone  string   // a whole number, or the beginning of a number followed by "*"
	Name   string   // words of a name; each word must begin a word of the contact's name; case and accents do not matter
	Filled string   // name of a field that must have a value
	Any    []string // the contact has at least one of these tags
}

// ContactBatch contains contacts to add to a client's list.
type ContactBatch struct {
	All []Contact // at most 1,000, sorted by phone, each phone once
	Now time.Time

	// Day is the day on which one call is counted. The cap never refuses the call. Zero: no call is counted. If Day
	// is set and one contact is refused, the store refuses the whole batch.
	Day Date
	Key *Idempotency // may be nil; its function Answer gets the MergedContacts
}

// MergedContacts is the result of a merge.
type MergedContacts struct {
	All            []Contact // the contacts after the merge, in the given order; a refused contact has no ID
	Refused        map[int]ReasonCode
	Added, Changed int
}

// CalledRun contains the data of a run from which a contact can be made.
type CalledRun struct {
	ID      RunID
	Phone   string // "" after the person was erased
	Origin  Origin
	Zone    string
	Request []byte // empty if it was removed, or is longer than 64 KiB
}

// personID matches WhatsApp's business-scoped user id: a country, perhaps ENT, then letters and digits, joined by
// dots.
var personID = regexp.MustCompile(`^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$`)

// networkGroup matches the id of a group. Its beginning is "capi_group:" in base64.
var networkGroup = regexp.MustCompile(`^Y2FwaV9ncm91cD[A-Za-z0-9+/=_-]{8,120}$`)

// IsNetworkGroup reports whether a recipient is the id of a group in Meta's Groups API. Official sessions whose
// account has that API can write to the group.
func IsNetworkGroup(recipient string) bool {
	return len(recipient) <= MaxPersonID && networkGroup.MatchString(recipient)
}

// MaxPersonID is the length of the longest id of a person or group, in bytes.
const MaxPersonID = 135

// IsPersonID reports whether a recipient is a person's id that hides the person's number. Only Official sessions can
// write to such an id. Each business gets a different id for the same person. The id changes when the person's number
// changes.
func IsPersonID(recipient string) bool {
	return len(recipient) <= MaxPersonID && personID.MatchString(recipient)
}

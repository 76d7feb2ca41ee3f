package search

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
)

// Rows is how many rows each group of a result has at most.
const Rows = 8

// Bounds of the searches by words, so that the whole takes less than 100 ms.
const (
	lookedCalls    = 1000 // the newest calls whose texts are compared
	lookedBookings = 1000 // the coming bookings whose fields are compared
	namedPeople    = 5    // of how many of the found people messages and bookings are shown
)

// Person is somebody with a phone or an id. Contact is 0 if the person is not a contact.
type Person struct {
	Contact puntuale.ContactID
	Phone   string
	Name    string // "": not known
}

// Result is the result of a search, at most [Rows] rows in each group, the best first.
type Result struct {
	People    []Person
	Messages  []puntuale.MessageDetail
	Bookings  []puntuale.Booking
	Sequences []puntuale.NamedItem
	Campaigns []puntuale.NamedItem
	Templates []puntuale.NamedItem
	Clients   []puntuale.NamedItem

	More map[Group]bool // groups of which there are, or may be, further rows
	// Partial are the groups of which the words of only a part was compared: the newest messages, or the next bookings. The
	// others may match, too. They can be read on in the list of the group.
	Partial map[Group]bool
}

// Group names a part of a result, as on the wire.
type Group string

const (
	People    Group = "people"
	Messages  Group = "messages"
	Bookings  Group = "bookings"
	Sequences Group = "sequences"
	Campaigns Group = "campaigns"
	Templates Group = "templates"
	Clients   Group = "clients"
)

// Groups are all groups, in the order in which pages show them.
var Groups = []Group{Clients, People, Messages, Bookings, Sequences, Campaigns, Templates}

// Count returns how many rows a group has.
func (f *Result) Count(g Group) int {
	return map[Group]int{People: len(f.People), Messages: len(f.Messages), Bookings: len(f.Bookings), Sequences: len(f.Sequences),
		Campaigns: len(f.Campaigns), Templates: len(f.Templates), Clients: len(f.Clients)}[g]
}

// Empty reports whether nothing was found.
func (f *Result) Empty() bool {
	return !slices.ContainsFunc(Groups, func(g Group) bool { return f.Count(g) > 0 })
}

// checked returns the text without spaces around it. found contains the faults that the calling package already found.
func checked(text string, found []puntuale.Fault) (string, error) {
	f := request.Faults(found)
	f.Required("query.text", strings.TrimSpace(text), puntuale.MaxName)
	return strings.TrimSpace(text), f.Err()
}

// OfPartner searches a partner's clients by name, e-mail, phone and id. Nothing inside of a client is found. Codes: invalid.
func OfPartner(ctx context.Context, partner *account.Partner, text string, found ...puntuale.Fault) (Result, error) {
	text, err := checked(text, found)
	if err != nil {
		return Result{}, err
	}
	out := Result{More: map[Group]bool{}}
	if c, err := partner.Account(ctx, text); err == nil {
		out.Clients = append(out.Clients, puntuale.NamedItem{ID: int64(c.ID), Name: c.Name})
	} else if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return Result{}, err
	}
	rows, next, err := partner.FindClients(ctx, account.ClientSearch{Text: text, Page: request.Page{Limit: strconv.Itoa(Rows)}})
	if err != nil {
		return Result{}, err
	}
	for _, c := range rows {
		if n := (puntuale.NamedItem{ID: int64(c.ID), Name: c.Name}); !slices.Contains(out.Clients, n) {
			out.Clients = append(out.Clients, n)
		}
	}
	out.More[Clients] = next != "" || len(out.Clients) > Rows
	out.Clients = out.Clients[:min(Rows, len(out.Clients))]
	return out, nil
}

// OfClient searches what belongs to a client: by number in any way of writing it, by name, with typing errors forgiven, by
// reference, by id, and by words of messages and bookings. Codes: invalid.
func OfClient(ctx context.Context, client *control.Client, text string, found ...puntuale.Fault) (Result, error) {
	text, err := checked(text, found)
	if err != nil {
		return Result{}, err
	}
	s := &clientSearch{ctx: ctx, client: client, text: text, out: Result{More: map[Group]bool{}, Partial: map[Group]bool{}}}
	for _, step := range []func() error{s.names, s.identified, s.numbers, s.people, s.messages, s.bookings} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	s.cut()
	return s.out, nil
}

// clientSearch is one search in a client's data.
type clientSearch struct {
	ctx    context.Context
	client *control.Client
	text   string
	phone  string // the whole number that the text is; "": it is none
	out    Result
}

var (
	dialled = regexp.MustCompile(`^\+?[0-9(][0-9 ()./-]*$`)
	digits  = regexp.MustCompile(`^[0-9]+$`)
)

func hasLetter(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

// names finds sequences, campaigns and templates.
func (s *clientSearch) names() error {
	named, err := s.client.FindNamed(s.ctx, s.text, Rows+1)
	s.out.Sequences, s.out.Campaigns, s.out.Templates = named[puntuale.NamedSequence], named[puntuale.NamedCampaign], named[puntuale.NamedTemplate]
	return err
}

// absent reports whether an error only says that nothing was found, or that the text cannot be what was looked for.
func absent(err error) bool {
	code := puntuale.CodeOf(err)
	return code == puntuale.CodeNotFound || code == puntuale.CodeInvalid
}

// identified finds what has the text as its id or reference.
func (s *clientSearch) identified() error {
	if digits.MatchString(s.text) {
		messages, err := s.client.Details(s.ctx, []string{s.text})
		if err != nil {
			return err
		}
		s.addMessages(messages)
		switch b, err := s.client.BookingWith(s.ctx, s.text); {
		case err == nil:
			s.addBookings([]puntuale.Booking{b.Booking})
		case !absent(err):
			return err
		}
		switch c, err := s.client.Contact(s.ctx, s.text); {
		case err == nil:
			s.addPeople(Person{c.ID, c.Phone, c.Name})
		case !absent(err):
			return err
		}
	}
	if len([]rune(s.text)) > puntuale.MaxReference {
		return nil
	}
	switch b, err := s.client.Booking(s.ctx, s.text); {
	case err == nil:
		s.addBookings([]puntuale.Booking{b.Booking})
	case !absent(err):
		return err
	}
	messages, next, err := s.client.Messages(s.ctx, control.MessageQuery{Reference: s.text, Page: request.Page{Limit: strconv.Itoa(Rows)}})
	if err != nil {
		return err
	}
	s.addMessages(messages)
	s.out.More[Messages] = s.out.More[Messages] || next != ""
	return nil
}

// shortestNumber is how many characters the beginning of a number must have.
const shortestNumber = 3

// numbers finds the person with a number, and people whose numbers begin with the text.
func (s *clientSearch) numbers() error {
	if id, err := s.client.ParseRecipient(s.text); err == nil && (dialled.MatchString(s.text) || !strings.HasPrefix(id, "+")) {
		s.phone = id
		person, known, err := s.personWith(id)
		if err != nil {
			return err
		}
		if known {
			s.addPeople(person)
		}
	}
	if !dialled.MatchString(s.text) || len(s.text) < shortestNumber {
		return nil
	}
	contacts, next, err := s.client.Contacts(s.ctx, control.ContactQuery{Phone: s.text + "*"}, request.Page{Limit: strconv.Itoa(Rows)})
	if absent(err) {
		return nil
	}
	s.addContacts(contacts)
	s.out.More[People] = s.out.More[People] || next != ""
	return err
}

// personWith returns the person with a whole number or id, if the client knows the person.
func (s *clientSearch) personWith(phone string) (p Person, known bool, err error) {
	contacts, err := s.client.ContactsOf(s.ctx, phone)
	if err != nil {
		return p, false, err
	}
	if c, ok := contacts[phone]; ok {
		return Person{c.ID, c.Phone, c.Name}, true, nil
	}
	messages, _, err := s.client.Messages(s.ctx, control.MessageQuery{Phone: phone, Page: request.Page{Limit: "1"}})
	if err != nil {
		return p, false, err
	}
	talk, err := s.client.Conversation(s.ctx, phone)
	if err != nil {
		return p, false, err
	}
	names, err := s.client.NamesOf(s.ctx, phone)
	return Person{Phone: phone, Name: names[phone]}, len(messages) > 0 || talk.Last.ID != 0, err
}

// people finds people by name.
func (s *clientSearch) people() error {
	if !hasLetter(s.text) {
		return nil
	}
	contacts, more, err := s.client.FindContacts(s.ctx, s.text, Rows)
	s.addContacts(contacts)
	s.out.More[People] = s.out.More[People] || more
	return err
}

// phones returns the numbers of the people whose messages and bookings are shown.
func (s *clientSearch) phones() []string {
	var all []string
	for _, p := range s.out.People[:min(namedPeople, len(s.out.People))] {
		all = append(all, p.Phone)
	}
	if s.phone != "" && !slices.Contains(all, s.phone) {
		all = append(all, s.phone)
	}
	return all
}

// named reports whether the person's name has each word of the text as it was written. People are also found with typing
// errors in the name.
func (s *clientSearch) named(phone string) bool {
	at := slices.IndexFunc(s.out.People, func(p Person) bool { return p.Phone == phone })
	if at < 0 {
		return true // the text is the number
	}
	name := strings.Fields(s.out.People[at].Name)
	for _, word := range strings.Fields(s.text) {
		if !slices.ContainsFunc(name, func(n string) bool { return strings.EqualFold(n, word) }) {
			return false
		}
	}
	return true
}

// messages finds the messages of the people, those of people with exactly this name first, and then those that have the words.
func (s *clientSearch) messages() error {
	var named, theirs []puntuale.MessageDetail
	for _, phone := range s.phones() {
		part, next, err := s.client.Messages(s.ctx, control.MessageQuery{Phone: phone, WithoutRescheduled: true, Page: request.Page{Limit: strconv.Itoa(Rows)}})
		if err != nil {
			return err
		}
		s.out.More[Messages] = s.out.More[Messages] || next != ""
		if s.named(phone) {
			named = append(named, part...)
		} else {
			theirs = append(theirs, part...)
		}
	}
	for _, all := range [][]puntuale.MessageDetail{named, theirs} {
		slices.SortFunc(all, func(a, b puntuale.MessageDetail) int { return cmp.Compare(b.ID, a.ID) })
		s.addMessages(all)
	}
	if !hasLetter(s.text) || len(s.out.Messages) > Rows {
		return nil
	}
	worded, next, err := s.client.Messages(s.ctx, control.MessageQuery{Text: s.text, Look: lookedCalls, WithoutRescheduled: true, Page: request.Page{Limit: strconv.Itoa(Rows)}})
	if err != nil {
		return err
	}
	s.addMessages(worded)
	s.unread(Messages, len(worded), next)
	return nil
}

// bookings finds the bookings of the people, and then the coming ones that have the words.
func (s *clientSearch) bookings() error {
	for _, phone := range s.phones() {
		part, next, err := s.client.Bookings(s.ctx, control.BookingQuery{Phone: phone, Page: request.Page{Limit: strconv.Itoa(Rows)}})
		if err != nil {
			return err
		}
		s.addBookings(part)
		s.out.More[Bookings] = s.out.More[Bookings] || next != ""
	}
	if len(s.out.Bookings) > Rows || !hasLetter(s.text) {
		return nil
	}
	since := s.client.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	part, next, err := s.client.Bookings(s.ctx, control.BookingQuery{Text: s.text, Look: lookedBookings,
		Period: request.Period{Start: []request.Bound{{Name: "start", Text: since}}}, Page: request.Page{Limit: strconv.Itoa(Rows)}})
	if err != nil {
		return err
	}
	s.addBookings(part)
	s.unread(Bookings, len(part), next)
	return nil
}

// unread notes that a search by words, which found some rows, ended before the end of a list.
func (s *clientSearch) unread(g Group, found int, next string) {
	s.out.More[g] = s.out.More[g] || next != ""
	if next != "" && found < Rows {
		s.out.Partial[g] = true
	}
}

func (s *clientSearch) addPeople(all ...Person) {
	for _, p := range all {
		if !slices.ContainsFunc(s.out.People, func(q Person) bool { return q.Phone == p.Phone }) {
			s.out.People = append(s.out.People, p)
		}
	}
}

func (s *clientSearch) addContacts(all []puntuale.Contact) {
	for _, c := range all {
		s.addPeople(Person{c.ID, c.Phone, c.Name})
	}
}

func (s *clientSearch) addMessages(all []puntuale.MessageDetail) {
	for i := range all {
		if !slices.ContainsFunc(s.out.Messages, func(m puntuale.MessageDetail) bool { return m.ID == all[i].ID }) {
			s.out.Messages = append(s.out.Messages, all[i])
		}
	}
}

func (s *clientSearch) addBookings(all []puntuale.Booking) {
	for i := range all {
		if !slices.ContainsFunc(s.out.Bookings, func(b puntuale.Booking) bool { return b.ID == all[i].ID }) {
			s.out.Bookings = append(s.out.Bookings, all[i])
		}
	}
}

// cut shortens every group to the rows that are shown.
func (s *clientSearch) cut() {
	for _, g := range Groups {
		if s.out.Count(g) > Rows {
			s.out.More[g] = true
		}
	}
	s.out.People = s.out.People[:min(Rows, len(s.out.People))]
	s.out.Messages = s.out.Messages[:min(Rows, len(s.out.Messages))]
	s.out.Bookings = s.out.Bookings[:min(Rows, len(s.out.Bookings))]
	s.out.Sequences = s.out.Sequences[:min(Rows, len(s.out.Sequences))]
	s.out.Campaigns = s.out.Campaigns[:min(Rows, len(s.out.Campaigns))]
	s.out.Templates = s.out.Templates[:min(Rows, len(s.out.Templates))]
}

// Package view holds the templates of the pages: the look, and never the logic. Every component finds the reader's language, zone and place
// in its context (see [Frame]); texts come from package language by [T].
package view

import (
	"context"
	"time"

	"puntuale"
	"puntuale/internal/web/language"
)

// Frame is what every page knows of its reader.
type Frame struct {
	Language *language.Language
	Zone     *time.Location // in which moments are shown: the client's, or the partner's default
	Now      time.Time
	Theme    string // "light", "dark", "" as the system
	Look     Look
	Who      *Who       // nil: nobody is signed in
	Place    *Dashboard // the client's dashboard that one is in; nil: the partner's, or none
	Nav      []Group
	Path     string   // of the page
	Back     []string // cursors of a list's pages before this one, oldest first; "" is the first page's
	Toasts   []Toast
	Unread   int    // people who wrote what nobody has read yet, at most [MostUnread]
	Notices  int    // that the reader did not read, at most [MostUnread]
	Request  string // the request's id, for a reader who asks for help
}

// MostUnread is how far unread people are counted.
const MostUnread = 100

// MostBack bounds how many pages of a list one can turn back.
const MostBack = 30

// Look is the partner's, or the product's own.
type Look struct {
	Name  string
	Logo  string // its address; "" none
	Style string // the address of a style with its colour; ""
}

// Who is the person signed in.
type Who struct {
	ID    string
	Name  string // or e-mail
	Email string
	Role  puntuale.Role
	Side  puntuale.Side
}

// Dashboard is a client's dashboard.
type Dashboard struct {
	Base      string // "/c/12": its pages' addresses begin with it
	Name      string
	Entered   bool // by the partner's user
	Suspended bool
	Expired   bool
	Sandbox   bool // all of its sessions are sandboxes
}

// Group is a part of the navigation.
type Group struct {
	Title string // key; "" none
	Items []Item
}

// Item is a page in the navigation.
type Item struct {
	Title  string // key
	Icon   string
	URL    string
	Active bool
	First  bool // also in a phone's bar
	Counts bool // it bears the number of people who wait for a reader
}

// Toast is a short text about the last action, shown once.
type Toast struct {
	Text string `json:"text"`           // in the reader's language
	Tone string `json:"tone"`           // "ok", "bad", "info"
	Undo string `json:"undo,omitempty"` // an address to post to, which takes it back; "" none
}

type frameKey struct{}

// With puts the frame into a context.
func With(ctx context.Context, f *Frame) context.Context {
	return context.WithValue(ctx, frameKey{}, f)
}

// Of returns the context's frame; an empty one in Italian if there is none, so that a test can use a component alone.
func Of(ctx context.Context) *Frame {
	if f, ok := ctx.Value(frameKey{}).(*Frame); ok {
		return f
	}
	return &Frame{Language: language.Italian, Zone: time.UTC}
}

// T returns the text with the key in the reader's language; pairs are names and values, N the number that counts.
func T(ctx context.Context, key string, pairs ...any) string {
	return Of(ctx).Language.T(key, pairs...)
}

// Has reports whether the reader may do what needs the role; if not, buttons are left out.
func Has(ctx context.Context, role puntuale.Role) bool {
	who := Of(ctx).Who
	return who != nil && who.Role >= role
}

// Number writes a whole number with separators of thousands.
func Number[N ~int | ~int64](ctx context.Context, n N) string {
	return Of(ctx).Language.Number(int64(n))
}

// Base is where the pages of the client's dashboard are: "/c/12".
func Base(ctx context.Context) string {
	if p := Of(ctx).Place; p != nil {
		return p.Base
	}
	return ""
}

func title(ctx context.Context, text string) string {
	name := Of(ctx).Look.Name
	switch {
	case text == "":
		return name
	case name == "":
		return text
	}
	return text + " · " + name
}

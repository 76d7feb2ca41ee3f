// Package view contains the common templates of the pages. They decide how pages look, and contain no logic. Every
// component finds the reader's language, time zone and dashboard in its context (see [Frame]). [T] returns texts of
// package language.
package view

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/language"
)

// Frame contains what every page shows about its reader.
type Frame struct {
	Language *language.Language
	Zone     *time.Location // the zone in which times are shown: the client's, or the default for a partner
	Now      time.Time
	Theme    string // "light", "dark", or "" for the system's theme
	Look     Look
	Who      *Who       // nil: nobody is signed in
	Place    *Dashboard // the client's dashboard that the reader sees; nil: no client's dashboard
	Nav      []Group
	Find     string // the address of the search in the present dashboard; "": the page has no search
	Path     string // the path of the page
	From     string // the address of this site's page that led to this one; "": none, or it is not known
	// LargeDocuments is true if a document may be larger than other uploaded files.
	LargeDocuments bool
	Back           []string // in a list: the cursors of the previous pages, oldest first; "" is the cursor of the first page
	Toasts         []Toast
	Own            string            // on a person's own pages: the name of the person's client; "": none
	Names          map[string]string // names of people on the page, by phone; see page.Request.NamePeople
	Unread         int               // how many people have unread replies, at most [MaxUnread]
	Notices        int               // how many notices the reader has not read, at most [MaxUnread]
	Request        string            // the request's id, which a reader can report when asking for help
}

// MaxUnread is the number at which counting people with unread replies stops.
const MaxUnread = 100

// MaxBack is the largest number of pages that a reader can go back in a list.
const MaxBack = 30

// Look is how pages look: a partner's look, or the product's own.
type Look struct {
	Name  string
	Logo  string // the address of the logo; "": none
	Style string // the address of a style sheet with the partner's colour; "": none
}

// Who is the signed-in person.
type Who struct {
	ID    string
	Name  string // the name, or the e-mail if there is no name
	Email string
	Role  puntuale.Role
	Side  puntuale.Side
}

// Dashboard is a client's dashboard.
type Dashboard struct {
	Base      string // such as "/c/12"; the addresses of the dashboard's pages begin with it
	Name      string
	Entered   bool // true: the reader is a user of the partner, and entered the client's dashboard
	Suspended bool
	Expired   bool
	Sandbox   bool // true: all sessions of the client are sandboxes
}

// Group is a part of the navigation.
type Group struct {
	Title string // the text key of the title; "": none
	Items []Item
}

// Item is a page in the navigation.
type Item struct {
	Title  string // the text key of the title
	Icon   string
	URL    string
	Active bool
	First  bool // true: the entry is also in the bar on a phone
	Counts bool // true: the entry shows how many people wait for an answer
}

// Toast is a short text about the last action. It is shown once.
type Toast struct {
	Text string `json:"text"`           // the text, in the reader's language
	Tone string `json:"tone"`           // "ok", "bad" or "info"
	Undo string `json:"undo,omitempty"` // a POST to this address undoes the action; "": it cannot be undone
}

type frameKey struct{}

// With adds the frame to a context.
func With(ctx context.Context, f *Frame) context.Context {
	return context.WithValue(ctx, frameKey{}, f)
}

// FrameOf returns the frame in a context. If the context has no frame, it returns an empty frame in Italian, so that a
// test can use a single component.
func FrameOf(ctx context.Context) *Frame {
	if f, ok := ctx.Value(frameKey{}).(*Frame); ok {
		return f
	}
	return &Frame{Language: language.Italian, Zone: time.UTC}
}

// T returns the text with this text key in the reader's language. The argument pairs contains names and values for the
// text. The value N decides between singular and plural.
func T(ctx context.Context, key string, pairs ...any) string {
	return FrameOf(ctx).Language.T(key, pairs...)
}

// Has reports whether the reader has this role, or a higher role. Templates leave out buttons that the reader's role
// does not allow.
func Has(ctx context.Context, role puntuale.Role) bool {
	reader := FrameOf(ctx).Who
	return reader != nil && reader.Role >= role
}

// Number formats a whole number with separators of thousands.
func Number[N ~int | ~int64](ctx context.Context, n N) string {
	return FrameOf(ctx).Language.Number(int64(n))
}

// Decimal formats an exact decimal number for the reader with two decimals, rounded half away from zero. What is not zero does not
// become zero: it is "<0,01" or ">−0,01". A text that is no number stays as it is.
func Decimal(ctx context.Context, exact string) string {
	plain, negative := strings.CutPrefix(exact, "-")
	whole, decimals, _ := strings.Cut(plain, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return exact
	}
	padded := decimals + "000"
	cents, _ := strconv.Atoi(padded[:2])
	if padded[2] >= '5' {
		cents++
	}
	n, cents = n+int64(cents/100), cents%100
	sign := ""
	if negative {
		sign = "−"
	}
	if n == 0 && cents == 0 && strings.Trim(decimals, "0") != "" {
		cents = 1
		if sign == "" {
			sign = "<"
		} else {
			sign = ">" + sign
		}
	}
	return fmt.Sprintf("%s%s%s%02d", sign, Number(ctx, n), T(ctx, "campaign.point"), cents)
}

// Amount formats an exact amount for the reader, with two decimals and its currency; "": there is none.
func Amount(ctx context.Context, exact, currency string) string {
	if exact == "" || currency == "" {
		return "–"
	}
	return Decimal(ctx, exact) + "\u00a0" + currency
}

// Counted formats a count beside a filter. Counts stop at [puntuale.MaxCounted]; then a plus says that there are more.
func Counted(ctx context.Context, n int) string {
	if n > puntuale.MaxCounted {
		return Number(ctx, puntuale.MaxCounted) + "+"
	}
	return Number(ctx, n)
}

// FoundWords says how many entries a list has, in the text of its noun, such as "contact.found".
func FoundWords(ctx context.Context, key string, n int) string {
	if n > puntuale.MaxCounted {
		return T(ctx, key, "N", Counted(ctx, n))
	}
	return T(ctx, key, "N", n)
}

// Base returns the beginning of the addresses of the client's dashboard, such as "/c/12".
func Base(ctx context.Context) string {
	if p := FrameOf(ctx).Place; p != nil {
		return p.Base
	}
	return ""
}

func title(ctx context.Context, text string) string {
	name := FrameOf(ctx).Look.Name
	switch {
	case text == "":
		return name
	case name == "":
		return text
	}
	return text + " · " + name
}

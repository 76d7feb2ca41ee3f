package storetest

import (
	"context"
	"testing"
	"time"

	"puntuale"
)

// namesOfPerson are names of one person: both forms of a number, and an id that a network reported.
var namesOfPerson = []string{"+5511987654321", "+551187654321", "20482973843@lid"}

// testNames checks each door with each pair of names of one person. What was recorded under the one name must have its
// effect under the other.
func testNames(t *testing.T, w *World) {
	for _, stored := range namesOfPerson {
		for _, given := range namesOfPerson {
			for door, holds := range doorsOfPerson {
				c := w.Client(puntuale.AccountFull)
				c.mustRequire(puntuale.ConsentFree)
				c.mustKnow()
				if !holds(w, c, stored, given) {
					t.Errorf("%s: recorded under %s, given %s", door, stored, given)
				}
			}
		}
	}
}

// mustKnow stores that the names belong to one person.
func (c *Client) mustKnow() {
	c.w.t.Helper()
	if err := c.w.KeepAliases(context.Background(), []puntuale.Alias{{Client: c.ID, Session: c.Session, Name: namesOfPerson[2], Phone: namesOfPerson[0]}}); err != nil {
		c.w.t.Fatal(err)
	}
}

// claims claims a new message to the phone, and returns the answer.
func (w *World) claims(c *Client, purpose puntuale.Purpose, phone string) puntuale.ClaimAnswer {
	w.t.Helper()
	id := c.startFor(purpose, phone, Begin, 1)[0]
	_, answers := w.MustClaim(w.MustJoin(), Begin.Add(time.Minute), c.marked(c.Items(phone, 0, id))...)
	return answers[0]
}

func (c *Client) block(phone string) {
	c.w.t.Helper()
	if err := c.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Added: Begin}, Day, nil); err != nil {
		c.w.t.Fatal(err)
	}
}

var doorsOfPerson = map[string]func(w *World, c *Client, stored, given string) bool{
	"stop": func(_ *World, c *Client, stored, given string) bool {
		ids := c.MustStart(stored, Begin, 2)
		done, err := c.Stop(context.Background(), c.Sequence, []string{given}, "", Day, Begin)
		return err == nil && len(done.IDs) == len(ids)
	},
	"cancel": func(_ *World, c *Client, stored, given string) bool {
		c.MustStart(stored, Begin, 2)
		done, err := CancelPending(context.Background(), c, []string{given}, false, Day, Begin)
		return err == nil && len(done) == 2
	},
	"if_running": func(_ *World, c *Client, stored, given string) bool {
		ids := c.MustStart(stored, Begin.Add(time.Hour), 1)
		r := c.Run(given, Begin.Add(time.Hour), 1)
		r.IfRunning = puntuale.IfRunningSkip
		again, err := c.Start(context.Background(), r)
		return err == nil && len(again.IDs) == 1 && again.IDs[0] == ids[0]
	},
	"blacklist": func(w *World, c *Client, stored, given string) bool {
		c.block(stored)
		return w.claims(c, puntuale.PurposeService, given) == puntuale.ClaimBlacklisted
	},
	"remove from the blacklist": func(w *World, c *Client, stored, given string) bool {
		c.block(stored)
		found, err := c.RemoveBlacklisted(context.Background(), c.person(given), Day, Begin)
		return err == nil && found && w.claims(c, puntuale.PurposeService, stored) == puntuale.ClaimGranted
	},
	"blacklist once": func(_ *World, c *Client, stored, given string) bool {
		c.block(stored)
		c.block(given)
		all, _, err := c.Blacklist(context.Background(), puntuale.Page{})
		return err == nil && len(all) == 1
	},
	"among the blacklist": func(_ *World, c *Client, stored, given string) bool {
		c.block(stored)
		listed, err := c.AmongBlacklisted(context.Background(), []string{given}, c.mark)
		return err == nil && listed[given]
	},
	"consent": func(w *World, c *Client, stored, given string) bool {
		e := optOut(stored, "1", puntuale.ConsentWithdraw, 0)
		e.Blacklist = ""
		c.mustEnter(e)
		refused, err := c.MarketingRefused(context.Background(), []string{given}, c.mark)
		all, _, listError := c.Consents(context.Background(), c.person(given), puntuale.Page{})
		return err == nil && refused[given] && listError == nil && len(all) == 1 && w.claims(c, puntuale.PurposeMarketing, given) == puntuale.ClaimNoConsent
	},
	"consent again": func(w *World, c *Client, stored, given string) bool {
		c.mustEnter(optOut(stored, "1", puntuale.ConsentWithdraw, 0))
		c.mustEnter(optOut(given, "2", puntuale.ConsentUndo, time.Minute))
		return w.claims(c, puntuale.PurposeMarketing, stored) == puntuale.ClaimGranted
	},
	"list": func(_ *World, c *Client, stored, given string) bool {
		c.MustStart(stored, Begin, 2)
		all, _, err := c.Messages(context.Background(), puntuale.MessageFilter{Phone: given}, puntuale.Page{})
		return err == nil && len(all) == 2
	},
	"contact": func(_ *World, c *Client, stored, given string) bool {
		for _, phone := range []string{stored, given} {
			if _, err := c.MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: phone, Name: "Bia"}}, Day: Day, Now: Begin}); err != nil {
				return false
			}
		}
		all, _, err := c.Contacts(context.Background(), puntuale.ContactFilter{Phone: given}, puntuale.Page{})
		_, found, findError := c.ContactOf(context.Background(), given)
		return err == nil && len(all) == 1 && findError == nil && found
	},
	"erase": func(w *World, c *Client, stored, given string) bool {
		ids := c.MustStart(stored, Begin, 1)
		c.block(stored)
		c.mustEnter(optOut(stored, "1", puntuale.ConsentWithdraw, 0))
		done := c.mustErase(given, Begin)
		left := w.mentions(c.ID, "87654321")
		for _, name := range namesOfPerson { // the marks of all names stay, although nothing joins the names any more
			if w.claims(c, puntuale.PurposeService, name) != puntuale.ClaimBlacklisted {
				return false
			}
			refused, err := c.MarketingRefused(context.Background(), []string{name}, c.mark)
			if err != nil || !refused[name] {
				return false
			}
		}
		return done.Cancelled == 1 && done.Blacklisted && len(left) == 0 && c.Detail(ids[0]).Phone == ""
	},
}

// moved makes the store move a person to another number.
func (c *Client) moved(from, to string) {
	c.w.t.Helper()
	if err := c.w.ChangeNumber(context.Background(), Begin, puntuale.NumberChange{Client: c.ID, Session: c.Session, ID: from, Mark: Unique("mark"), At: Begin, Old: []string{from}, New: []string{to}}); err != nil {
		c.w.t.Fatal(err)
	}
}

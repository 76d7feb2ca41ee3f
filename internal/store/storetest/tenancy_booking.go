package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// everyResult chooses the messages of all days.
var everyResult = puntuale.ResultFilter{By: puntuale.ResultBySequence, Start: puntuale.DateOf(Begin.AddDate(-1, 0, 0)), End: puntuale.DateOf(Begin.AddDate(1, 0, 0))}

// countResults counts all noted messages.
func (w *World) countResults() {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.Store.CountResults(context.Background(), 1000); err != nil {
			w.t.Fatal(err)
		}
	}
}

// ofBookings contains the methods of a tenant about bookings, linking pages, the health of numbers, files, results, restores and the simulated network.
var ofBookings = map[string]foreign{
	"KeepStatementParts": nil, // writes only rows of its own client
	"StatementLines": func(tenant puntuale.Tenant, other *Client, id puntuale.MessageID) (any, error) {
		if err := other.KeepStatementParts(context.Background(), 202609, Begin, 0, []puntuale.StatementPart{{Messages: []puntuale.MessageID{id}}}); err != nil {
			return nil, err
		}
		found, err := tenant.StatementLines(context.Background(), 202609, Begin, []puntuale.MessageID{id})
		return slices.Collect(maps.Keys(found)), err
	},
	"HealthOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		h, err := tenant.HealthOf(context.Background(), other.Session, Begin)
		if h.Limit > 0 || h.Quality != "" {
			return h, err
		}
		return []string{}, err
	},
	"OfferLinkingPage": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.OfferLinkingPage(context.Background(), other.Session, "stolen", Begin.Add(time.Hour))
		return nil, err
	},
	"Restored": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		r, err := tenant.Restored(context.Background())
		if r == (puntuale.RestoreResult{}) {
			return []puntuale.RestoreResult(nil), err
		}
		return r, err
	},
	"SandboxMessages": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.SandboxMessages(context.Background(), puntuale.Page{})
		return all, err
	},
	"Results": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		r, err := tenant.Results(context.Background(), everyResult, Begin)
		return r.All, err
	},
	"ResultMessages": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.ResultMessages(context.Background(), puntuale.ResultMessages{ResultFilter: everyResult}, puntuale.Page{Limit: 100})
		return all, err
	},
	"CreateFile": nil,
	"AddFilePart": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		return tenant.AddFilePart(context.Background(), id, 0, []byte("x"))
	}),
	"FinishFile": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		_, err := tenant.FinishFile(context.Background(), puntuale.File{ID: id, Hash: make([]byte, 32)})
		return err
	}),
	"SmallPicture": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		_, err := tenant.SmallPicture(context.Background(), id)
		return err
	}),
	"FileUsers": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		f := other.upload("loro", Begin)
		id, err := other.CreateTemplate(context.Background(), puntuale.Template{Name: "loro", Media: f.ID.Address(), Created: Begin, Updated: Begin}, nil)
		if err != nil {
			return []string{err.Error()}, nil
		}
		all, err := tenant.FileUsers(context.Background())
		return slices.Collect(maps.Keys(all)), errors.Join(err, other.DeleteTemplate(context.Background(), id))
	},
	"DropFile": nil, // it does nothing to a file that is not there
	"File": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		_, err := tenant.File(context.Background(), id)
		return err
	}),
	"FilePart": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		_, err := tenant.FilePart(context.Background(), id, 0)
		return err
	}),
	"Files": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		other.upload("loro", Begin)
		all, err := tenant.Files(context.Background())
		return all, err
	},
	"DeleteFile": onFile(func(tenant puntuale.Tenant, id puntuale.FileID) error {
		return tenant.DeleteFile(context.Background(), id, Begin)
	}),
	"CreateCalendar": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		_, err := tenant.CreateCalendar(context.Background(), puntuale.Calendar{Name: "mio", Sealed: []byte("x"), PhoneFrom: []string{"title"}, Created: Begin}, nil)
		if err != nil {
			return []string{err.Error()}, nil
		}
		all, err := other.Calendars(context.Background())
		return slices.DeleteFunc(all, func(c puntuale.Calendar) bool { return c.Name != "mio" }), err
	},
	"Calendars": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := otherCalendar(other)
		if err != nil {
			return []string{err.Error()}, nil
		}
		all, err := tenant.Calendars(context.Background())
		return slices.DeleteFunc(all, func(c puntuale.Calendar) bool { return c.ID != id }), err
	},
	"Calendar": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, err := tenant.Calendar(context.Background(), id)
		return err
	}),
	"CalendarEntries": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, _, err := tenant.CalendarEntries(context.Background(), id, false, puntuale.Page{})
		return err
	}),
	"UpdateCalendar": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, err := tenant.UpdateCalendar(context.Background(), id, puntuale.CalendarPatch{Name: new("mio")}, Begin)
		return err
	}),
	"DeleteCalendar": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		return tenant.DeleteCalendar(context.Background(), id)
	}),
	"ReadCalendarNow": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, err := tenant.ReadCalendarNow(context.Background(), id, Begin)
		return err
	}),
	"StartCalendar": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, err := tenant.StartCalendar(context.Background(), id, Begin)
		return err
	}),
	"CancelGone": onCalendar(func(tenant puntuale.Tenant, id puntuale.CalendarID) error {
		_, err := tenant.CancelGone(context.Background(), id, 1, Begin)
		return err
	}),
	"ErasedBookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("segno.1")); err != nil {
			return []string{err.Error()}, nil
		}
		found, err := tenant.ErasedBookings(context.Background(), []string{"segno"})
		if len(found) == 0 {
			return []any{}, err
		}
		return []any{found}, err
	},
	"PutBooking": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r := other.Booking("altrui")
		_, err := tenant.PutBooking(context.Background(), r)
		return nil, err
	},
	"BookingState": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("sua")); err != nil {
			return []string{err.Error()}, nil
		}
		found, err := tenant.BookingState(context.Background(), "sua", "")
		if found.Revision == 0 {
			return []any{}, err
		}
		return []any{found}, err
	},
	"MovedBookingState": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("sua prima")); err != nil {
			return []string{err.Error()}, nil
		}
		found, err := tenant.MovedBookingState(context.Background(), "sua poi", "sua prima", "")
		if found.Revision == 0 && found.MovedOn == 0 {
			return []any{}, err
		}
		return []any{found}, err
	},
	"BookingHistory": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		result, err := other.PutBooking(context.Background(), other.Booking("storia"))
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.BookingHistory(context.Background(), result.ID)
	},
	"Bookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("elenco")); err != nil {
			return []string{err.Error()}, nil
		}
		all, _, err := tenant.Bookings(context.Background(), puntuale.BookingFilter{Names: []string{phone}}, puntuale.Page{})
		return all, err
	},
	"CountBookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("conto")); err != nil {
			return []string{err.Error()}, nil
		}
		counts, err := tenant.CountBookings(context.Background(), Begin.AddDate(-1, 0, 0), Begin.AddDate(1, 0, 0))
		if counts.Total() == 0 {
			return []any{}, err
		}
		return []any{counts}, err
	},
	"NamedBookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("nome")); err != nil {
			return []string{err.Error()}, nil
		}
		found, err := tenant.NamedBookings(context.Background(), []string{"nome"})
		return slices.Collect(maps.Keys(found)), err
	},
	"KeepAsOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		result, err := other.PutBooking(context.Background(), other.Booking("nuovo"))
		if err != nil {
			return []string{err.Error()}, nil
		}
		if err := tenant.KeepAsOf(context.Background(), []puntuale.Booking{result.Booking}, puntuale.AsOf{Kind: puntuale.AsOfNumber, Value: 7}); err != nil {
			return []string{}, err
		}
		if now, err := other.BookingState(context.Background(), "nuovo", ""); err != nil || now.AsOf != result.AsOf {
			return []any{now}, err
		}
		return []string{}, nil
	},
	"StartReplan": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.StartReplan(context.Background(), puntuale.Replan{Sequence: other.Sequence, Door: puntuale.DoorAPI, Edited: Begin, Started: Begin})
	},
	"Replan": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if err := other.StartReplan(context.Background(), puntuale.Replan{Sequence: other.Sequence, Door: puntuale.DoorAPI, Edited: Begin, Started: Begin}); err != nil {
			return []string{err.Error()}, nil
		}
		found, known, err := tenant.Replan(context.Background(), other.Sequence)
		if known {
			return []any{found}, err
		}
		return []any{}, err
	},
	"MoveReplan": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.MoveReplan(context.Background(), other.Sequence, puntuale.ReplanPaused, Begin, puntuale.ReplanRunning)
	},
	"ReplanBookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("rifatto")); err != nil {
			return []string{err.Error()}, nil
		}
		some, _, err := tenant.ReplanBookings(context.Background(), puntuale.ReplanFilter{Sequence: other.Sequence}, 10)
		return some, err
	},
	"CountReplan": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("contato")); err != nil {
			return []string{err.Error()}, nil
		}
		n, err := tenant.CountReplan(context.Background(), puntuale.ReplanFilter{Sequence: other.Sequence})
		return make([]int, n), err
	},
	"SpendCall": nil, // no argument belongs to another client
	"NextMessages": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		result, err := other.PutBooking(context.Background(), other.Booking("prossimo"))
		if err != nil {
			return []string{err.Error()}, nil
		}
		next, err := tenant.NextMessages(context.Background(), []puntuale.BookingID{result.ID})
		return slices.Collect(maps.Keys(next)), err
	},
}

// otherCalendar makes a calendar of another client.
func otherCalendar(other *Client) (puntuale.CalendarID, error) {
	return other.CreateCalendar(context.Background(), puntuale.Calendar{Name: "suo", Sealed: []byte("x"), PhoneFrom: []string{"title"}, Created: Begin}, nil)
}

// onCalendar tries a method with the id of another client's calendar.
func onCalendar(try func(tenant puntuale.Tenant, id puntuale.CalendarID) error) foreign {
	return func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		id, err := otherCalendar(other)
		if err != nil {
			return []string{err.Error()}, nil
		}
		return nil, try(tenant, id)
	}
}

// onFile calls do with the other client's file.
func onFile(do func(tenant puntuale.Tenant, id puntuale.FileID) error) func(puntuale.Tenant, *Client, puntuale.MessageID) (any, error) {
	return func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, do(tenant, other.upload("loro", Begin).ID)
	}
}

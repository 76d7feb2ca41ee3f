package view

import (
	"context"
	"strings"
	"time"

	"puntuale"
)

// BookingURL returns the address of a booking's page. more is the end of the path, such as "/move".
func BookingURL(ctx context.Context, id puntuale.BookingID, more string) string {
	return Base(ctx) + "/bookings/" + id.String() + more
}

func bookingTone(s puntuale.BookingStatus) string {
	switch s {
	case puntuale.BookingConfirmed:
		return "ok"
	case puntuale.BookingOpen:
		return "warn"
	case puntuale.BookingArrived:
		return "info"
	case puntuale.BookingNoShow:
		return "bad"
	case puntuale.BookingCancelled:
	}
	return "quiet"
}

// BookingsOn says how many bookings a day or a period has, and how many of them have each status, such as "Domani: 18
// appuntamenti, 11 confermati, 1 annullato, 6 senza risposta".
func BookingsOn(ctx context.Context, when string, counts puntuale.BookingCounts) string {
	words := []string{T(ctx, "booking.total", "N", counts.Total())}
	for _, s := range []puntuale.BookingStatus{puntuale.BookingArrived, puntuale.BookingConfirmed, puntuale.BookingNoShow, puntuale.BookingCancelled, puntuale.BookingOpen} {
		if counts[s] > 0 {
			words = append(words, T(ctx, "booking.count."+s.String(), "N", counts[s]))
		}
	}
	return when + ": " + strings.Join(words, ", ")
}

// NamedDay returns "today", "tomorrow" or "yesterday" in the reader's language, or else the day with its weekday.
func NamedDay(ctx context.Context, day puntuale.Date) string {
	today := puntuale.DateOf(FrameOf(ctx).Now.In(FrameOf(ctx).Zone))
	switch day {
	case today:
		return T(ctx, "booking.today")
	case today.AddDays(1):
		return T(ctx, "booking.tomorrow")
	case today.AddDays(-1):
		return T(ctx, "booking.yesterday")
	}
	return FrameOf(ctx).Language.LongDay(day.At(12*time.Hour, time.UTC))
}

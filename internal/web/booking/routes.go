// Package booking contains the pages of bookings: the day and the week, one booking, its changes, and a new one.
package booking

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(bookingRoutes, changeRoutes, moveRoutes, newBookingRoutes)

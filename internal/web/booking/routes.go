// Package booking contains the pages of bookings: the day and the week, one booking, its changes,
// a new one, the import of a file, and what an edited sequence does with the bookings that there are.
package booking

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(bookingRoutes, changeRoutes, moveRoutes, newBookingRoutes, importRoutes, replanRoutes)

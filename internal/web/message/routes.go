// Package message is the pages of what leaves and left: the day, the calendar, the list of messages, what is done to many of them, messages whose outcome
// a restore lost, the blacklist, and the simulated phone.
package message

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(homeRoutes, messageRoutes, bulkRoutes, calendarRoutes, phoneRoutes, blacklistRoutes, unknownRoutes)

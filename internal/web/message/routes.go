// Package message contains the pages of messages: the day, the calendar, the list, and actions on many messages. It
// also contains the pages of the blacklist, of the simulated phone, and of messages whose outcome a restore lost.
package message

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(homeRoutes, messageRoutes, sendRoutes, bulkRoutes, calendarRoutes, phoneRoutes, blacklistRoutes, unknownRoutes)

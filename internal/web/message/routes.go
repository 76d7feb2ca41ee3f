// Package message has the pages of messages: the day, the calendar, the list, and what is done to many messages. It also has the messages
// whose outcome a restore lost, the blacklist, and the simulated phone.
package message

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(homeRoutes, messageRoutes, sendRoutes, bulkRoutes, calendarRoutes, phoneRoutes, blacklistRoutes, unknownRoutes)

// Package person is the pages of people: the list of contacts, what people wrote, and one person with all that is known.
package person

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(personRoutes, conversationRoutes, consentRoutes, replyRoutes, mediaRoutes, contactRoutes, contactFileRoutes)

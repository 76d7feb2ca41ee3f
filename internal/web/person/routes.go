// Package person contains the pages about people: the list of contacts, what people wrote, and one page for each
// person.
package person

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(personRoutes, conversationRoutes, consentRoutes, replyRoutes, mediaRoutes, contactRoutes, contactFileRoutes)

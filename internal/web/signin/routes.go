// Package signin contains the pages of signing in: the sign-in pages, invitations, and a person's own profile.
package signin

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(signinRoutes, resetRoutes, invitationRoutes, profileRoutes, noticeRoutes)

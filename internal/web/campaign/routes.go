// Package campaign contains the pages of mass sends: the list, the wizard that prepares a campaign, and the progress of
// a campaign.
package campaign

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(campaignRoutes, trialRoutes)

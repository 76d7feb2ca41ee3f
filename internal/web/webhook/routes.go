// Package webhook contains the pages of webhooks: a client's, and a partner's for all its clients. The pages list the
// webhooks and their deliveries. Owners create, change, test and delete webhooks, and send events again.
package webhook

import "slices"

// Routes are all pages of the package.
var Routes = slices.Concat(webhookRoutes("/partner/webhooks", true), webhookRoutes("/c/{client}/webhooks", false))

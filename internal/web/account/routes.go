// Package account contains the pages of the agency: clients and their accounts, brand, teams, API keys, the audit log
// and usage. It also contains a client's own pages of teams, keys, the audit log and usage.
package account

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(partnerRoutes, planRoutes, accountRoutes, teamRoutes, auditRoutes, keyRoutes, usageRoutes, settingRoutes)

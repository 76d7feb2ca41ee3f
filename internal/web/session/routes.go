// Package session has the pages of a client's numbers: linking them, Official numbers, gateways, devices and links to Chatwoot. It also has
// the phone from which a person sends by hand.
package session

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(assistedRoutes, sessionRoutes, deviceRoutes, officialRoutes, gatewayRoutes, chatwootRoutes)

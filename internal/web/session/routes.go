// Package session contains the pages of a client's numbers: linking, Official numbers, gateways, devices and links to
// Chatwoot. It also contains the phone app, with which a person sends by hand.
package session

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(assistedRoutes, sessionRoutes, linkingRoutes, deviceRoutes, officialRoutes, gatewayRoutes, chatwootRoutes, builderRoutes)

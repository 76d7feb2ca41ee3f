// Package sequence contains the pages of sequences: the list, the editor, previews, starts by hand, templates, examples
// of calls, import and export.
package sequence

import (
	"slices"
)

// Routes are all pages of the package.
var Routes = slices.Concat(whichRoutes, sequenceRoutes, startRoutes, exportRoutes, templateRoutes)

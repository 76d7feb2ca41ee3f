// Package campaign has the pages of mass sends: the list, the wizard that prepares one, and its progress.
package campaign

// Routes are all pages of the package.
var Routes = campaignRoutes

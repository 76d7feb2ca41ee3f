// Package campaigncommand runs "puntuale campaign". Through a running server, it creates a campaign from a list and
// checks it. It shows the result of the check, asks the user, starts the campaign, and shows its progress.
package campaigncommand

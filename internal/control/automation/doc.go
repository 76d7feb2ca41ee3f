// Package automation is what clients may ask about their automations, and what programs may ask of the hooks of automations. It checks a
// request as a whole and asks the store, as package control does.
package automation

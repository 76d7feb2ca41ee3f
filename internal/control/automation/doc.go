// Package automation executes clients' requests about their automations, and programs' calls of hooks. Like package
// control, it checks the whole request, and then calls the store.
package automation

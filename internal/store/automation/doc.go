// Package automation keeps clients' rules, their triggers, timers and dates, and their log. The transaction that acts is in package store,
// because it starts and stops messages.
//
// # The order of locks
//
// A change of rules locks what a rule names (session, template, sequence), then the client, then the rules. A transaction that acts locks the
// client's row of usage and its row of automations, then persons, messages and runs. The triggers, timers, dates and the log come last.
package automation

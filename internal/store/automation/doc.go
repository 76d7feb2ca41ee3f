// Package automation stores clients' rules, their triggers, timers and dates, and their log. The transaction in which rules act is in package
// store, because it also starts and stops messages.
//
// # The order of locks
//
// A change of a rule locks the session, the templates and the sequences that the rule names. Then it locks the client, the client's row in
// automation_client, and the rule.
//
// A transaction in which rules act locks the client's usage and its row in automation_client. Then it locks contacts, triggers, timers, dates
// and occurrences. Then it locks messages and runs, and at last the rules.
package automation

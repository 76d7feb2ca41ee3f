// Package mail sends e-mails to people by SMTP. Their text is in the reader's language, with the partner's brand. The
// e-mails come from a queue in the database.
package mail

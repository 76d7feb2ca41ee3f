package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"puntuale"
)

// passing reports whether the transaction may succeed if it runs again: after a deadlock, a serialisation failure, or a
// busy file.
func passing(err error) bool {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code == "40P01" || p.Code == "40001"
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.Code()&0xff == sqlite3.SQLITE_BUSY
	}
	return errors.Is(err, ErrAgain)
}

// ErrAgain makes a transaction run again from its beginning, because the data changed after the transaction read them.
var ErrAgain = errors.New("changed while it was read")

// lost reports whether the connection cannot be used any more.
func lost(err error) bool {
	if errors.Is(err, errAway) {
		return true
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		// 57P0x: PostgreSQL is shutting down or starting. 08: connection exceptions. 25006: the PostgreSQL server
		// became a standby. The function ends reports all other errors after which the connection is closed.
		return ends(p) || strings.HasPrefix(p.Code, "57P") || strings.HasPrefix(p.Code, "08") || p.Code == "25006"
	}
	if _, ok := errors.AsType[*sqlite.Error](err); ok {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.Timeout(err) ||
		err != nil && strings.Contains(err.Error(), "conn closed")
}

// ends reports whether this error means that PostgreSQL ends the connection, or the server itself.
func ends(p *pgconn.PgError) bool {
	return p.SeverityUnlocalized == "FATAL" || p.SeverityUnlocalized == "PANIC"
}

// Unsure reports whether the transaction may still be on disk after a failed COMMIT. If PostgreSQL answered that it
// rolled the transaction back, Unsure returns false. Code 40003 means that PostgreSQL itself does not know the result.
func Unsure(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || ends(p) || p.Code == "40003"
}

// exhausted reports whether PostgreSQL had too little disk or memory for a statement. If it had, the next
// statement would fail for the same reason.
func exhausted(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(p.Code, "53")
}

// tooLong reports whether PostgreSQL ended a statement because it took too long or waited too long for a lock.
func tooLong(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && p.Code == "57014" || LockedOut(err)
}

// LockedOut reports whether a statement waited for a lock as long as lock_timeout allows (postgres.go).
func LockedOut(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	return ok && p.Code == "55P03"
}

// errTwin means that a call could not take its idempotency key, because an equal call is running. The error of such a
// call wraps errTwin.
var errTwin = errors.New("the idempotency key is held")

// OnKey wraps an error that occurred while idempotency keys were taken. If the statement waited too long for a lock,
// the result wraps errTwin.
func OnKey(err error) error {
	if LockedOut(err) {
		return fmt.Errorf("%w: %w", errTwin, err)
	}
	return err
}

// corrupt reports whether the database found damage in its own files.
func corrupt(err error) bool {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code == "XX001" || p.Code == "XX002"
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.Code()&0xff == sqlite3.SQLITE_CORRUPT || s.Code()&0xff == sqlite3.SQLITE_NOTADB
	}
	return false
}

// full reports whether the disk is full.
func full(err error) bool {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code == "53100"
	}
	s, ok := errors.AsType[*sqlite.Error](err)
	return ok && s.Code()&0xff == sqlite3.SQLITE_FULL
}

// broken reports whether the disk under SQLite failed. After that, nobody knows what is in the file until the next
// start opens it again and reads it.
func broken(err error) bool {
	s, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch s.Code() & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// Repeated reports whether a unique constraint was violated.
func Repeated(err error) bool {
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		return p.Code == "23505"
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		return s.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || s.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// Codes of the faults that functions in this file return.
const (
	faultCallEndedEarly puntuale.ReasonCode = "call.ended_early"
	faultCannotBeStored puntuale.ReasonCode = "fault.cannot_be_stored"
	faultTextTooLong    puntuale.ReasonCode = "fault.text_too_long"
	faultTwinUnderWay   puntuale.ReasonCode = "fault.twin_under_way"
	faultStoreInDoubt   puntuale.ReasonCode = "store.in_doubt"
)

// PublicError turns an error into an error with a public code. The store returns errors only in this form.
func PublicError(err error) error {
	if err == nil || errors.Is(err, puntuale.ErrFenced) || errors.Is(err, puntuale.ErrStale) {
		return err
	}
	if _, ok := errors.AsType[*puntuale.Error](err); ok {
		return err
	}
	switch {
	case full(err):
		return puntuale.StoreFull(err)
	case corrupt(err):
		return puntuale.StoreDamaged(err)
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch p.Code {
		case "22021", "22P05": // characters that PostgreSQL cannot store: NUL, invalid UTF-8
			return &puntuale.Error{Code: puntuale.CodeInvalid, Reason: puntuale.Because(faultCannotBeStored), Err: err}
		case "54000": // an index entry is larger than a third of a database page
			return &puntuale.Error{Code: puntuale.CodeInvalid, Reason: puntuale.Because(faultTextTooLong), Err: err}
		}
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		switch s.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT:
			return puntuale.Unavailable(err)
		}
	}
	_, dialling := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case errors.Is(err, errTwin):
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultTwinUnderWay), RetryAfter: time.Second, Err: err}
	case errors.Is(err, errAway), dialling:
		return puntuale.Unavailable(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // must come before the case lost, because an expired deadline also looks like a network error
		return &puntuale.Error{Code: puntuale.CodeUnavailable, RetryAfter: time.Second, Reason: puntuale.Because(faultCallEndedEarly), Err: err}
	case passing(err), lost(err), exhausted(err), tooLong(err):
		return puntuale.Unavailable(err)
	}
	return err
}

// InDoubt reports whether an error says that nobody knows whether a transaction was committed.
func InDoubt(err error) bool {
	e, ok := errors.AsType[*puntuale.Error](err)
	return ok && e.Reason.Code == faultStoreInDoubt
}

// inDoubt returns the error for a connection that broke during COMMIT. Nobody knows whether the transaction is on disk.
func inDoubt(err error) error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, RetryAfter: time.Second, Err: fmt.Errorf("commit: %w", err),
		Reason: puntuale.Because(faultStoreInDoubt)}
}

// FoundOr returns the error not_found if found is false. Use it outside a transaction. A row of another tenant gives
// the same error as a missing row.
func FoundOr(found bool, err error, missing puntuale.ReasonCode) error {
	return PublicError(ThereOr(found, err, missing))
}

// ThereOr does the same as FoundOr inside a transaction. It does not give err a public code, because the writer decides
// from err whether the transaction runs again.
func ThereOr(found bool, err error, missing puntuale.ReasonCode) error {
	switch {
	case err != nil:
		noun, _, _ := strings.Cut(string(missing), ".")
		return fmt.Errorf("read a %s: %w", noun, err)
	case !found:
		return puntuale.NotFound(missing)
	}
	return nil
}

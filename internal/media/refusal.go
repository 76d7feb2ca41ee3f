package media

import (
	"context"
	"errors"
	"net"
	"strconv"

	"puntuale"
)

// Causes with which the fetcher itself ends a fetch.
var (
	errTooLong = errors.New("the fetch took too long")
	errTooSlow = errors.New("the host sends too slowly")
	errClosed  = errors.New("the fetcher was closed")
	errFull    = errors.New("the room for media is taken by files in use")
)

// Reasons why a file cannot be fetched.
const (
	reasonMissing     puntuale.ReasonCode = "media.missing"
	reasonRefused     puntuale.ReasonCode = "media.refused"
	reasonTooBig      puntuale.ReasonCode = "media.too_big"
	reasonKind        puntuale.ReasonCode = "media.no_file"
	reasonUnreachable puntuale.ReasonCode = "media.unreachable"
	reasonSlow        puntuale.ReasonCode = "media.slow"
	reasonBroken      puntuale.ReasonCode = "media.incomplete"
	reasonLater       puntuale.ReasonCode = "media.not_yet"
)

// Details of the reasons above. A detail says which rule was broken.
const (
	reasonDetail       puntuale.ReasonCode = "media.detail"     // {1}: one of the other details
	reasonOverLimit    puntuale.ReasonCode = "media.over_limit" // {1}: the limit in bytes
	reasonHTTP         puntuale.ReasonCode = "media.http"       // {1}: the HTTP status
	reasonNotPublic    puntuale.ReasonCode = "media.not_public" // the host's address is not public
	reasonTimeUp       puntuale.ReasonCode = "media.time_up"
	reasonTooSlow      puntuale.ReasonCode = "media.too_slow"
	reasonUnresolved   puntuale.ReasonCode = "media.unresolved" // the host's name has no address now
	reasonNoAnswer     puntuale.ReasonCode = "media.no_answer"
	reasonNoConnection puntuale.ReasonCode = "media.no_connection"
	reasonGivenUp      puntuale.ReasonCode = "media.given_up" // no caller waits any more
	reasonNoAddress    puntuale.ReasonCode = "media.address_unreadable"
	reasonScheme       puntuale.ReasonCode = "media.scheme"
	reasonUserName     puntuale.ReasonCode = "media.user_name"
	reasonNoHost       puntuale.ReasonCode = "media.no_host"
	reasonPortInvalid  puntuale.ReasonCode = "media.port_invalid"
	reasonPort         puntuale.ReasonCode = "media.port_not_allowed"
	reasonRedirects    puntuale.ReasonCode = "media.redirects"        // {1}: how many redirects are allowed
	reasonNoRedirect   puntuale.ReasonCode = "media.redirect_without" // the redirect has no address
	reasonCompressed   puntuale.ReasonCode = "media.compressed"
	reasonEmpty        puntuale.ReasonCode = "media.empty"
	reasonPage         puntuale.ReasonCode = "media.web_page" // {1}: the content type
	reasonClosedEarly  puntuale.ReasonCode = "media.closed_early"
	reasonNoRoom       puntuale.ReasonCode = "media.no_room"
	reasonManyFiles    puntuale.ReasonCode = "media.too_many_files" // too many files are in use
	reasonNotStored    puntuale.ReasonCode = "media.not_stored"
)

// A detail says which rule was broken. It never says which address a name resolved to, or which resolver answered,
// because this would reveal facts about our own network to a caller.

func final(code, detail puntuale.ReasonCode, err error, args ...string) *puntuale.SendError {
	return refusal(puntuale.Final, code, puntuale.Because(detail, args...), err)
}

func transient(code, detail puntuale.ReasonCode, err error, args ...string) *puntuale.SendError {
	return refusal(puntuale.Transient, code, puntuale.Because(detail, args...), err)
}

func refusal(kind puntuale.SendErrorKind, code puntuale.ReasonCode, detail puntuale.Reason, err error) *puntuale.SendError {
	return &puntuale.SendError{Kind: kind, Reason: puntuale.Because(code), Detail: puntuale.Because(reasonDetail, detail.Stored()), Err: err}
}

// tooBig returns the error for a file that exceeds a limit.
func tooBig(limit int64) *puntuale.SendError {
	return final(reasonTooBig, reasonOverLimit, nil, strconv.FormatInt(limit, 10))
}

// interrupted returns the error for a failure of the network. The end of the context may have caused the failure.
func interrupted(ctx context.Context, err error) *puntuale.SendError {
	var refused *addressError
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	cause := context.Cause(ctx)
	switch {
	case errors.As(err, &refused):
		return final(puntuale.ReasonFileAddress, reasonNotPublic, err)
	case errors.Is(cause, errTooLong):
		return transient(reasonSlow, reasonTimeUp, errors.Join(cause, err))
	case errors.Is(cause, errTooSlow):
		return transient(reasonSlow, reasonTooSlow, errors.Join(cause, err))
	case cause != nil:
		return gaveUp(cause)
	case errors.As(err, &name) && name.IsNotFound: // the same error as for a forbidden address: callers must not learn which names exist inside our network
		return final(puntuale.ReasonFileAddress, reasonNotPublic, err)
	case errors.As(err, &name):
		return transient(reasonUnreachable, reasonUnresolved, err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return transient(reasonUnreachable, reasonNoAnswer, err)
	default:
		return transient(reasonUnreachable, reasonNoConnection, err)
	}
}

// gaveUp returns the error if no caller waits any more, or if the fetcher closes.
func gaveUp(err error) *puntuale.SendError {
	return transient(reasonLater, reasonGivenUp, err)
}

// asSendError converts any error of a fetch into a SendError.
func asSendError(ctx context.Context, err error) *puntuale.SendError {
	if e := puntuale.AsSendError(err); e != nil {
		return e
	}
	return interrupted(ctx, err)
}

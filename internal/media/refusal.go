package media

import (
	"context"
	"errors"
	"fmt"
	"net"

	"puntuale"
)

// What ends a fetch from within.
var (
	errTooLong = errors.New("the fetch took too long")
	errTooSlow = errors.New("the host sends too slowly")
	errClosed  = errors.New("the fetcher was closed")
	errFull    = errors.New("the room for media is taken by files in use")
)

// Sentences people read in risposta.
const (
	saysForbidden   = "Indirizzo del file non ammesso"
	saysMissing     = "File non trovato all'indirizzo indicato"
	saysRefused     = "Il server del file rifiuta la richiesta"
	saysTooBig      = "File troppo grande"
	saysKind        = "All'indirizzo indicato non c'è un file da inviare"
	saysUnreachable = "File non raggiungibile"
	saysSlow        = "Il server del file è troppo lento"
	saysBroken      = "File arrivato incompleto"
	saysLater       = "File non ancora scaricato"
)

// The details say which rule was broken, never what a name resolved to or who said so. That would tell a caller about
// the network we are in.

func final(reason, detail string, err error) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Final, Reason: reason, Detail: "media: " + detail, Err: err}
}

func transient(reason, detail string, err error) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Transient, Reason: reason, Detail: "media: " + detail, Err: err}
}

// tooBig refuses a file by the limit that it exceeds.
func tooBig(limit int64) *puntuale.SendError {
	return final(saysTooBig, fmt.Sprintf("il file supera %d byte", limit), nil)
}

// interrupted explains an error of the network, which the context may have caused.
func interrupted(ctx context.Context, err error) *puntuale.SendError {
	var refused *addressError
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	cause := context.Cause(ctx)
	switch {
	case errors.As(err, &refused):
		return final(saysForbidden, "l'host non ha un indirizzo pubblico", err)
	case errors.Is(cause, errTooLong):
		return transient(saysSlow, "tempo massimo superato", errors.Join(cause, err))
	case errors.Is(cause, errTooSlow):
		return transient(saysSlow, "velocità minima non raggiunta", errors.Join(cause, err))
	case cause != nil:
		return given(cause)
	case errors.As(err, &name) && name.IsNotFound: // the same answer as above: which names there are within is nobody's business
		return final(saysForbidden, "l'host non ha un indirizzo pubblico", err)
	case errors.As(err, &name):
		return transient(saysUnreachable, "il nome dell'host per ora non si risolve", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return transient(saysUnreachable, "l'host non risponde in tempo", err)
	default:
		return transient(saysUnreachable, "la connessione non è riuscita", err)
	}
}

// given is the answer when nobody waits any more, or when the fetcher closes.
func given(err error) *puntuale.SendError {
	return transient(saysLater, "attesa interrotta", err)
}

// asSendError makes any error of a fetch into one.
func asSendError(ctx context.Context, err error) *puntuale.SendError {
	if e := puntuale.AsSendError(err); e != nil {
		return e
	}
	return interrupted(ctx, err)
}

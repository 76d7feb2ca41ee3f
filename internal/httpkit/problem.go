package httpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/catalogue"
)

// Codes of the faults that this file reports.
const (
	faultCallGivenUp puntuale.ReasonCode = "call.given_up"
	faultInternal    puntuale.ReasonCode = "fault.internal"
	faultMore        puntuale.ReasonCode = "fault.more"
	faultOneMore     puntuale.ReasonCode = "fault.one_more"
)

// ProblemType is the media type of an error's body.
const ProblemType = "application/problem+json"

// Bounds of an answer: how many characters of a caller's value and of a location the answer shows, and how many faults
// it lists.
const (
	shownValue    = 100
	shownLocation = 200
	shownFaults   = 100
)

// Problem is the body of every answer that is not a success. Its form is RFC 9457. It has no member "type", because
// "type" would always be about:blank. A Problem is also an error, so that a handler can return it.
type Problem struct {
	Title     string        `json:"title" doc:"The status in words"`
	Status    int           `json:"status" doc:"The HTTP status"`
	Detail    string        `json:"detail" doc:"What is wrong, for people"`
	Code      puntuale.Code `json:"code" doc:"What is wrong, for programs: it never changes"`
	Errors    []Fault       `json:"errors,omitempty" doc:"Every fault of the request, and where it is"`
	RequestID string        `json:"request_id" doc:"Names this call in the server's log"`

	Cap       *int64 `json:"daily_api_cap,omitempty" doc:"With status 429: calls allowed a day"`
	Used      *int64 `json:"daily_api_used,omitempty" doc:"With status 429: calls used today"`
	Remaining *int64 `json:"daily_api_remaining,omitempty" doc:"With status 429: calls remaining today"`

	header http.Header
}

// Fault is one error in a request, with its location.
type Fault struct {
	Location string `json:"location,omitempty" doc:"Where, as body.steps[2].timing or query.timezone"`
	Message  string `json:"message" doc:"What is wrong there"`
	Value    any    `json:"value,omitempty" doc:"What was found there"`
}

// NewProblem returns the answer for an error. The errors of all handlers pass through this function. It logs an error
// with status 500 or 503, because the operator may have to act. The answer shows no internal details.
func NewProblem(ctx context.Context, logger *slog.Logger, err error) *Problem {
	var e *puntuale.Error
	switch {
	case errors.Is(context.Cause(ctx), puntuale.ErrStopping): // err is only a result of the stop
		e = puntuale.ErrStopping
	case errors.As(err, &e):
	case ctx.Err() != nil: // the caller closed the connection, so nobody reads the answer
		e = &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(faultCallGivenUp)}
	default:
		e = &puntuale.Error{Code: puntuale.CodeInternal, Err: err}
	}
	p := &Problem{Status: Status(e.Code), Code: e.Code, Detail: catalogue.Message(e.Reason), RequestID: RequestID(ctx), header: http.Header{}}
	p.Title = http.StatusText(p.Status)
	switch p.Status {
	case http.StatusInternalServerError:
		p.Code, p.Detail = puntuale.CodeInternal, catalogue.Message(puntuale.Because(faultInternal))
		logger.ErrorContext(ctx, "request failed", "request_id", p.RequestID, "error", err)
		return p
	case http.StatusServiceUnavailable:
		if ctx.Err() == nil { // otherwise the error only says that the caller closed the connection
			logger.WarnContext(ctx, "request refused: unavailable", "request_id", p.RequestID, "error", err)
		}
	case http.StatusUnauthorized:
		p.header.Set("WWW-Authenticate", `Bearer realm="puntuale"`)
	}
	for _, f := range e.Faults[:min(len(e.Faults), shownFaults)] {
		if text, ok := f.Value.(string); ok {
			f.Value = cut(text, shownValue)
		}
		p.Errors = append(p.Errors, Fault{cut(f.Location, shownLocation), catalogue.Message(f.Reason()), f.Value})
	}
	if more := len(e.Faults) - shownFaults; more > 0 {
		reason := puntuale.Because(faultMore, strconv.Itoa(more))
		if more == 1 {
			reason = puntuale.Because(faultOneMore)
		}
		p.Errors = append(p.Errors, Fault{Message: catalogue.Message(reason)})
	}
	if u := e.Usage; u != nil {
		p.Cap, p.Used, p.Remaining = new(u.Cap), new(u.Used), new(u.Remaining())
	}
	if e.RetryAfter > 0 {
		p.header.Set("Retry-After", RetryAfter(e.RetryAfter))
	}
	return p
}

// RetryAfter formats a duration as a value of the header Retry-After: in whole seconds, rounded up, at least 1.
func RetryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// Write answers with the problem. It sets Content-Length, so that the caller has the whole answer before the handler
// ends.
func (p *Problem) Write(w http.ResponseWriter) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // encoding a Problem as JSON cannot fail
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", ProblemType)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes()) // this fails only if the caller closed the connection
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus, GetHeaders and ContentType are the methods that huma calls on an error that a handler returns.
func (p *Problem) GetStatus() int            { return p.Status }
func (p *Problem) GetHeaders() http.Header   { return p.header }
func (p *Problem) ContentType(string) string { return ProblemType }

// cut shortens a text that is too long for an answer.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}

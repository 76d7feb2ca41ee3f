package httpkit

import (
	"net/http"

	"puntuale"
)

// CodeMethod is the code of status 405. Only HTTP answers use it.
const CodeMethod puntuale.Code = "method_not_allowed"

// statuses is the only table from codes to HTTP statuses. The order of its rows is the order in which a call is
// checked. If several rows apply, the first row decides the answer.
var statuses = []struct {
	code   puntuale.Code
	status int
}{
	{puntuale.CodeUnauthorized, http.StatusUnauthorized},
	{puntuale.CodeForbidden, http.StatusForbidden},
	{puntuale.CodeTooLarge, http.StatusRequestEntityTooLarge},
	{puntuale.CodeUnreadable, http.StatusBadRequest},
	{puntuale.CodeNotFound, http.StatusNotFound},
	{puntuale.CodeGone, http.StatusGone},
	{CodeMethod, http.StatusMethodNotAllowed},
	{puntuale.CodeInvalid, http.StatusUnprocessableEntity},
	{puntuale.CodeConflict, http.StatusConflict},
	{puntuale.CodeStale, http.StatusConflict},
	{puntuale.CodePrecondition, http.StatusPreconditionFailed},
	{puntuale.CodeBusy, http.StatusConflict},
	{puntuale.CodeQuotaReached, http.StatusConflict},
	{puntuale.CodeCapReached, http.StatusTooManyRequests},
	{puntuale.CodeRateLimited, http.StatusTooManyRequests},
	{puntuale.CodeUnavailable, http.StatusServiceUnavailable},
	{puntuale.CodeStoreFull, http.StatusServiceUnavailable},
	{puntuale.CodeStoreDamaged, http.StatusServiceUnavailable},
	{puntuale.CodeOverloaded, http.StatusServiceUnavailable},
	{puntuale.CodeInternal, http.StatusInternalServerError},
}

// Status returns the HTTP status of a code. For a code that is not in the table, it returns 500.
func Status(code puntuale.Code) int {
	for _, row := range statuses {
		if row.code == code {
			return row.status
		}
	}
	return http.StatusInternalServerError
}

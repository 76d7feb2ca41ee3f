package httpkit

import (
	"net/http"

	"puntuale"
)

// CodeMethod is the code of a 405: it exists on the wire only.
const CodeMethod puntuale.Code = "method_not_allowed"

// statuses is the only table from codes to HTTP statuses. The rows have the order of the checks of a call: the first row that applies is
// the answer.
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

// Status returns the HTTP status of a code; 500 for one that the table does not know.
func Status(code puntuale.Code) int {
	for _, row := range statuses {
		if row.code == code {
			return row.status
		}
	}
	return http.StatusInternalServerError
}

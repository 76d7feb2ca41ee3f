package page

import (
	"net/http"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
)

// CSV returns the form of a table for a spreadsheet in the reader's language.
func (v *Request) CSV() httpkit.CSV {
	return httpkit.CSV{Spreadsheet: true, Semicolons: v.Frame.Language.Code == "it"}
}

// SendCSV answers with a table as the file NAME.csv. It calls read for the rows, first with the cursor "".
func (v *Request) SendCSV(name string, header []string, read httpkit.Rows) error {
	rows, next, err := read("")
	if err != nil {
		return err
	}
	v.Answered = true
	if err := v.CSV().Send(v.Writer, clock.System().Now, name, header, rows, next, v.Pass.LeaveSeat, func(cursor string) ([][]string, string, error) {
		if err := v.ReadOn(); err != nil {
			return nil, "", err
		}
		return read(cursor)
	}); err != nil {
		v.BreakOff(err)
	}
	return nil
}

// Today returns the date in the client's time zone, for the name of a file.
func (v *Request) Today() string { return v.Now().In(v.Frame.Zone).Format(time.DateOnly) }

// ReadOn takes a seat again before the handler reads the next part of a file. Call it after the previous part was sent.
func (v *Request) ReadOn() error {
	v.Memory.Close()
	_, err := v.Pass.Return(v.Ctx())
	return err
}

// BreakOff ends a file early, so that the file does not look complete.
func (v *Request) BreakOff(err error) {
	if v.Ctx().Err() == nil { // if the context has ended, the reader closed the connection
		v.Site.logger.ErrorContext(v.Ctx(), "an export broke off", "request_id", v.Frame.Request, "error", err)
	}
	panic(http.ErrAbortHandler)
}

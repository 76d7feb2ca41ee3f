package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
)

func registerConsent(a *api) {
	const all = "/api/contacts/consent"
	client(a, operation{id: "listConsent", method: http.MethodGet, path: all, strict: true,
		summary: "List what people agreed to, oldest first"}, listConsent)
	clientOnce(a, operation{id: "addConsent", method: http.MethodPost, path: all, prevents: true, body: consentBody{},
		summary: "Enter what a person agreed to, or withdrew", refusals: []int{http.StatusConflict}}, withBody(addConsent))
	export := operation{id: "exportConsent", method: http.MethodGet, path: all + "/export", strict: true, summary: "Download the ledger of consent as CSV, with the proof of each row"}
	client(a, export, a.exportConsent)
	documentCSV(a, export)
	everything := operation{id: "everythingOf", method: http.MethodPost, path: "/api/contacts/everything", body: eraseBody{}, strict: true,
		summary: "Download all that is kept of one person, as one document"}
	client(a, everything, withBody(a.everythingOf))
	a.documented(everything).Responses["200"].Content = map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: "object"}}}
}

// consentBody documents the body of the call that changes a consent.
type consentBody struct {
	Phone   string `json:"phone" read:"phone" doc:"A number is taken too"`
	Purpose string `json:"purpose" enum:"marketing,service"`
	Change  string `json:"change" enum:"grant,withdraw"`
	Source  string `json:"source" minLength:"1" maxLength:"200" doc:"Where the person said it: a form, a contract, a call"`
	Words   string `json:"words,omitempty" maxLength:"4096" doc:"What the person said or signed, as proof"`
}

type consentRecord struct {
	Phone   string  `json:"phone" doc:"Empty once the person's data was removed"`
	Purpose string  `json:"purpose" enum:"marketing,service"`
	Change  string  `json:"change" enum:"grant,withdraw,undo"`
	Source  string  `json:"source"`
	Words   string  `json:"words"`
	At      string  `json:"at" format:"date-time" doc:"When the person said it"`
	Message *string `json:"message" doc:"The network's id of the message in which the person said it; null: it was none"`
	By      string  `json:"by,omitempty" doc:"Who entered it; absent: the person"`
	Applied bool    `json:"applied" doc:"false: a later change was known already"`
	Erased  bool    `json:"erased,omitempty" doc:"true once the person's data was removed"`
}

type consentsInput struct {
	ListInput
	Phone string `query:"phone" doc:"The person; else everybody"`
}

type consentsAnswer struct {
	Consents []consentRecord `json:"consents"`
	Next     *string         `json:"next_cursor"`
}

func listConsent(ctx context.Context, c *control.Client, in *call, p *consentsInput) (consentsAnswer, error) {
	rows, next, err := c.Consents(ctx, p.Phone, p.page(in))
	if err != nil {
		return consentsAnswer{}, err
	}
	return consentsAnswer{each(rows, consentOf), textOrNull(next)}, nil
}

func consentOf(c puntuale.Consent) consentRecord {
	return consentRecord{c.Phone, c.Purpose.String(), c.Change.String(), c.Source, c.Words, stamp(c.At), textOrNull(c.Message), c.EnteredBy, c.Applied, c.Erased}
}

func addConsent(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *consentBody) (consentRecord, error) {
	entered, err := c.AddConsent(ctx, control.ConsentCall(*body), once(in, p, consentOf), in.refused...)
	if err != nil {
		return consentRecord{}, err
	}
	return consentOf(entered), nil
}

func (a *api) exportConsent(ctx context.Context, c *control.Client, in *call, _ *struct{}) (writtenBytes, error) {
	header := []string{"phone", "purpose", "change", "source", "words", "message", "by", "at", "entered_at", "applied"}
	return a.sendCSV(ctx, in, "consent", header, func(ctx context.Context, cursor string) (all [][]string, next string, err error) {
		rows, next, err := c.Consents(ctx, "", request.Page{Limit: strconv.Itoa(exportRows), Cursor: cursor})
		for _, r := range rows {
			all = append(all, []string{
				inert(r.Phone), r.Purpose.String(), r.Change.String(), inert(r.Source), inert(r.Words), inert(r.Message), inert(r.EnteredBy), stamp(r.At), stamp(r.Entered), strconv.FormatBool(r.Applied),
			})
		}
		return all, next, err
	})
}

// exportRows is the number of rows that an export reads from the store at a time.
const exportRows = 1000

// sendCSV answers with a table as the file NAME.csv. It calls read for the rows, first with the cursor "".
func (a *api) sendCSV(ctx context.Context, in *call, name string, header []string, read func(ctx context.Context, cursor string) ([][]string, string, error)) (writtenBytes, error) {
	rows, next, err := read(ctx, "")
	if err != nil {
		return nil, err
	}
	return func(out huma.Context) {
		_, writer := humago.Unwrap(out)
		if err := (httpkit.CSV{}).Send(writer, a.now, name, header, rows, next, in.pass.LeaveSeat, func(cursor string) ([][]string, string, error) {
			ctx, err := in.pass.Return(ctx)
			if err != nil {
				return nil, "", err
			}
			return read(ctx, cursor)
		}); err != nil {
			a.logger.ErrorContext(ctx, "a download broke off", "file", name, "error", err)
			panic(http.ErrAbortHandler)
		}
	}, nil
}

// everythingOf ignores members of the body that it does not know, so it does not read an [eraseBody].
func (a *api) everythingOf(ctx context.Context, c *control.Client, in *call, _ *struct{}, body *unlistBody) (writtenBytes, error) {
	person, err := c.Person(ctx, body.Phone, append(in.unknown, in.refused...)...)
	if err != nil {
		return nil, err
	}
	return func(out huma.Context) {
		out.SetHeader("Content-Type", "application/json")
		out.SetHeader("Content-Disposition", `attachment; filename="person.json"`)
		_, writer := humago.Unwrap(out)
		connection := http.NewResponseController(writer)
		if err := person.WriteTo(ctx, out.BodyWriter(), func() { _ = connection.SetWriteDeadline(a.now().Add(httpkit.ExportWriteTime)) }); err != nil {
			a.logger.ErrorContext(ctx, "a download broke off", "file", "person.json", "error", err)
			panic(http.ErrAbortHandler)
		}
	}, nil
}

func registerContacts(a *api) {
	client(a, operation{
		id: "eraseContact", method: http.MethodPost, path: "/api/contacts/erase", prevents: true, body: eraseBody{}, strict: true,
		summary:     "Forget the person behind a number",
		description: "Cancel what is pending, remove the number and all texts; strict: what it does not know it refuses.",
		refusals:    []int{http.StatusConflict},
	}, withBody(eraseContact))
}

// eraseBody documents the body of the call that erases a person.
type eraseBody struct {
	Phone string `json:"phone" read:"phone" doc:"A phone number, or a group id. A number is taken too."`
	_     closedCheck
}

type erasedAnswer struct {
	Message     string `json:"message"`
	Cancelled   int    `json:"cancelled" doc:"Messages that were pending, and are never sent"`
	Messages    int    `json:"messages" doc:"Messages without number and texts from now on, the cancelled ones among them"`
	Sandbox     int    `json:"sandbox_messages" doc:"What the simulated network had received, without number and text from now on"`
	Answers     int    `json:"answers" doc:"Answers kept for repeats of calls, without the number from now on"`
	Blacklisted bool   `json:"blacklisted" doc:"The number is in the blacklist, as a keyed hash from now on"`
}

const saysErased = "Dati del destinatario rimossi"

func eraseContact(ctx context.Context, c *control.Client, in *call, _ *struct{}, body *eraseBody) (erasedAnswer, error) {
	done, err := c.Erase(ctx, body.Phone, append(in.unknown, in.refused...)...)
	if err != nil {
		return erasedAnswer{}, err
	}
	return erasedOf(done), nil
}

func erasedOf(e puntuale.ErasureResult) erasedAnswer {
	return erasedAnswer{saysErased, e.Cancelled, e.Messages, e.Sandbox, e.Answers, e.Blacklisted}
}

package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
)

// The sentences in the answers about the blacklist. The contract defines saysRemoved and saysAbsent; saysAdded is ours.
const (
	saysRemoved = "Numero di telefono rimosso dalla blacklist"
	saysAbsent  = "Numero di telefono non trovato in blacklist"
	saysAdded   = "Numero di telefono aggiunto alla blacklist"
)

func registerBlacklist(a *api) {
	client(a, operation{id: "listBlacklist", method: http.MethodGet, path: "/api/blacklist", strict: true,
		summary: "List the blacklist, by the order of addition"}, listBlacklist)
	clientOnce(a, operation{id: "addToBlacklist", method: http.MethodPost, path: "/api/blacklist", prevents: true, body: blacklistBody{},
		summary:     "Add a number to the blacklist",
		description: "Adding twice changes nothing.", refusals: []int{http.StatusConflict}}, withBody(addBlacklisted))
	client(a, operation{id: "removeFromBlacklist", method: http.MethodDelete, path: "/api/blacklist/remove", body: unlistBody{}, optional: true,
		summary:     "Remove a number from the blacklist",
		description: "What it kept back is not sent. The number may stand in the query, because some proxies drop the body of a DELETE."}, removeBlacklisted)
	client(a, operation{id: "importBlacklist", method: http.MethodPut, path: "/api/blacklist/import", upload: maxList, strict: true, prevents: true,
		summary:     "Add the numbers of a file to the blacklist",
		description: "CSV or XLSX, at most 100 MiB, 100,000 rows and 100,000 numbers; without a header if the first row has a number. Every number of a row is added. A cell that is no number is reported, and the row's other numbers are added."}, importBlacklist)
	documentUpload(a, "/api/blacklist/import")
}

type blacklistImportInput struct {
	Columns string `query:"columns" doc:"What the columns have: phone:Telefono,phone2:Cellulare,reason:Motivo. A row may have several numbers: phone and any digits. Without it they are guessed"`
	Header  string `query:"header" doc:"The line of the header row. Without it the server looks for it, also below a title"`
	Check   string `query:"check" enum:"true,false" doc:"true: store nothing, and answer what would be stored"`
}

type importedBlacklistAnswer struct {
	Rows    int                `json:"rows"`
	Found   int                `json:"found" doc:"Different numbers in the file"`
	Added   int                `json:"added" doc:"Numbers of these that were not on the blacklist"`
	Header  int                `json:"header" doc:"The line of the header row; 0: there is none"`
	Hidden  int                `json:"hidden" doc:"Rows that the spreadsheet hides, for example by a filter. They are read like the others"`
	Columns []columnAnswer     `json:"columns" doc:"The header, with what each column has"`
	Numbers []numberAnswer     `json:"numbers" doc:"The first cells of the column phone, with all numbers in each"`
	Refused []refusedAnswer    `json:"refused" doc:"Rows that have something that is not stored"`
	Lines   []refusedBlacklist `json:"lines" doc:"The first 1,000 of these rows"`
}

type refusedBlacklist struct {
	Line   int     `json:"line"`
	Phone  *string `json:"phone" doc:"The row's first number, which is stored; null: the row has none"`
	Reason string  `json:"reason" enum:"bad_row,invalid_phone,bad_field"`
	Value  string  `json:"value" doc:"What was refused"`
}

func importBlacklist(ctx context.Context, c *control.Client, in *call, p *blacklistImportInput) (importedBlacklistAnswer, error) {
	done, err := c.ImportBlacklist(ctx, in.file, in.kind, fileImport(p.Columns, "", p.Header, p.Check, in.unknown))
	if err != nil {
		return importedBlacklistAnswer{}, err
	}
	return importedBlacklistAnswer{
		Rows: done.Rows, Found: done.Found, Added: done.Added, Header: done.Header, Hidden: done.Hidden,
		Columns: columnsOf(done.Columns, done.Mapping), Numbers: numbersOf(done.Numbers),
		Refused: each(done.Refused, func(g puntuale.RefusedGroup) refusedAnswer { return refusedAnswer(g) }),
		Lines:   each(linesOf(done.Lines), func(l refusedContact) refusedBlacklist { return refusedBlacklist(l) }),
	}, nil
}

// blacklistBody documents the body of the call that adds to the blacklist.
type blacklistBody struct {
	Phone  string `json:"phone" read:"phone" doc:"A number is taken too"`
	Reason string `json:"reason,omitempty" maxLength:"200"`
}

// unlistBody documents the body of the call that removes from the blacklist.
type unlistBody struct {
	Phone string `json:"phone" read:"phone" doc:"A number is taken too"`
}

type blacklistEntry struct {
	Phone  string `json:"phone"`
	Reason string `json:"reason"`
	Added  string `json:"added_at" format:"date-time"`
	Erased bool   `json:"erased,omitempty" doc:"true once the person's data was removed: the number is kept as a keyed hash, and phone is empty"`
}

type blacklistAnswer struct {
	Blacklist []blacklistEntry `json:"blacklist"`
	Next      *string          `json:"next_cursor"`
}

type blacklistedAnswer struct {
	Message string `json:"message"`
	Phone   string `json:"phone" doc:"The number as it is kept"`
}

func listBlacklist(ctx context.Context, c *control.Client, in *call, p *ListInput) (blacklistAnswer, error) {
	rows, next, err := c.Blacklist(ctx, p.page(in))
	if err != nil {
		return blacklistAnswer{}, err
	}
	entries := each(rows, func(e puntuale.BlacklistEntry) blacklistEntry {
		return blacklistEntry{e.Phone, e.Reason, stamp(e.Added), e.Erased}
	})
	return blacklistAnswer{entries, textOrNull(next)}, nil
}

func addBlacklisted(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *blacklistBody) (blacklistedAnswer, error) {
	added, err := c.AddBlacklisted(ctx, body.Phone, body.Reason, once(in, p, blacklistedOf), in.refused...)
	if err != nil {
		return blacklistedAnswer{}, err
	}
	return blacklistedOf(added), nil
}

func blacklistedOf(e puntuale.BlacklistEntry) blacklistedAnswer {
	return blacklistedAnswer{saysAdded, e.Phone}
}

type unlistInput struct {
	Phone string `query:"phone" doc:"The same as the body's phone, if there is no body"`
}

func removeBlacklisted(ctx context.Context, c *control.Client, in *call, p *unlistInput) (messageAnswer, error) {
	phone, faults := p.Phone, in.repeated("phone")
	if in.body != nil || phone == "" {
		body, err := decode[unlistBody](in, httpkit.MaxValues)
		if err != nil {
			return messageAnswer{}, err
		}
		phone, faults = body.Phone, in.refused
	}
	found, err := c.RemoveBlacklisted(ctx, phone, faults...)
	if err != nil {
		return messageAnswer{}, err
	}
	if !found {
		return messageAnswer{saysAbsent}, nil
	}
	return messageAnswer{saysRemoved}, nil
}

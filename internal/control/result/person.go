package result

import (
	"cmp"
	"context"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// PersonQuery is a request for the people behind a count.
type PersonQuery struct {
	Report
	Is, Not string // names of marks, separated by commas, such as "sent" and "read"; Is "": planned
	Reason  string // code of a reason
	Button  string // label of a button
	Page    request.Page
}

// Person is one message behind a count, with the person who was to get it.
type Person struct {
	puntuale.ResultMessage
	Phone string // "": the person was erased
	Name  string // "": not known
	Of    string // name of the message's sequence, or else of its send; "": it has none
}

// Letter returns the letter of the person's variant; "": the message has none.
func (p Person) Letter() string {
	if p.Variant == 0 {
		return ""
	}
	return puntuale.VariantKey(p.Variant - 1)
}

// Marks that a caller may name.
const markWords = "planned, sent, delivered, read, answered, opted_out, failed, skipped, cancelled, clicked"

func (p PersonQuery) filter(f *request.Faults, today puntuale.Date) puntuale.ResultMessages {
	out := puntuale.ResultMessages{ResultFilter: p.Report.filter(f, today, false), Reason: p.Reason, Button: p.Button}
	for _, x := range []struct {
		name, text string
		into       *puntuale.ResultMarks
	}{{"is", p.Is, &out.Is}, {"not", p.Not, &out.Not}} {
		marks, unknown := puntuale.ParseResultMarks(x.text)
		if unknown != "" {
			f.Add("query."+x.name, puntuale.FaultNotOneOf, unknown, markWords)
		}
		*x.into = marks
	}
	f.Text("query.reason", p.Reason, puntuale.MaxName)
	f.Text("query.button", p.Button, puntuale.MaxName)
	return out
}

// List lists the people behind a count, by the days on which the messages were due. A person with several messages is
// listed once for each. A page may be shorter than asked although a next one exists. Messages in the archive are left
// out. Codes: invalid.
func List(ctx context.Context, client *control.Client, p PersonQuery) ([]Person, string, error) {
	f := request.Faults(p.Faults)
	today, err := client.Day()
	if err != nil {
		return nil, "", err
	}
	filter := p.filter(&f, today)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	rows, next, err := client.ResultMessages(ctx, filter, p.Page)
	if err != nil {
		return nil, "", err
	}
	ids := make([]puntuale.MessageID, len(rows))
	for i, m := range rows {
		ids[i] = m.ID
	}
	found, err := client.OutlinesOf(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	byID := make(map[puntuale.MessageID]*puntuale.MessageDetail, len(found))
	phones := make([]string, 0, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
		if found[i].Phone != "" {
			phones = append(phones, found[i].Phone)
		}
	}
	names, err := client.NamesOf(ctx, phones...)
	if err != nil {
		return nil, "", err
	}
	all := make([]Person, 0, len(rows))
	for _, m := range rows {
		if d := byID[m.ID]; d != nil { // else it went to the archive meanwhile
			all = append(all, Person{m, d.Phone, names[d.Phone], cmp.Or(d.SequenceName, d.RunName)})
		}
	}
	return all, next, nil
}

// counts is how many parts Count reads.
const counts = 10

// Count counts the messages behind a count, up to [puntuale.MaxCounted]. all is false if there are more than n. It leaves out
// the same messages as List. Codes: invalid.
func Count(ctx context.Context, client *control.Client, p PersonQuery) (n int, all bool, err error) {
	f := request.Faults(p.Faults)
	today, err := client.Day()
	if err != nil {
		return 0, false, err
	}
	filter := p.filter(&f, today)
	if err := f.Err(); err != nil {
		return 0, false, err
	}
	part := request.Page{Limit: strconv.Itoa(puntuale.MaxCounted / counts)}
	for range counts {
		rows, next, err := client.ResultMessages(ctx, filter, part)
		if n += len(rows); err != nil || next == "" {
			return n, err == nil, err
		}
		part.Cursor = next
	}
	return n, false, nil
}

// cellMarks are the marks of the columns of [Cells].
var cellMarks = []puntuale.ResultMarks{puntuale.ResultSent, puntuale.ResultDelivered, puntuale.ResultRead, puntuale.ResultAnswered,
	puntuale.ResultOptedOut, puntuale.ResultFailed, puntuale.ResultSkipped, puntuale.ResultCancelled, puntuale.ResultClicked}

// Columns are the names of the columns of a file of people.
var Columns = []string{"phone", "nome", "message_id", "day", "of", "sequence", "step", "campaign", "variant", "sent", "delivered", "read", "answered", "opted_out", "failed", "skipped", "cancelled", "clicked"}

// Cells returns the row of a file of people, with the [Columns]. inert makes a cell that a spreadsheet does not run. For each
// mark there is "1" or "0", or "" where the network does not tell.
func Cells(p Person, inert func(string) string) []string {
	cells := make([]string, len(cellMarks))
	for i, mark := range cellMarks {
		switch {
		case mark.Untold(p.Told) != 0:
		case p.Marks&mark != 0:
			cells[i] = "1"
		default:
			cells[i] = "0"
		}
	}
	sequence, step, campaign := "", "", ""
	if p.Sequence != 0 {
		sequence, step = p.Sequence.String(), strconv.Itoa(p.Step)
	}
	if p.Campaign != 0 {
		campaign = p.Campaign.String()
	}
	return append([]string{inert(p.Phone), inert(p.Name), p.ID.String(), p.Day.String(), inert(p.Of), sequence, step, campaign, p.Letter()}, cells...)
}

package statement

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/statement"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// month returns the month in the address; without one, the present month.
func month(v *page.Request) puntuale.Month {
	now := puntuale.MonthOf(v.Now().In(v.Frame.Zone))
	m, err := puntuale.ParseMonth(v.Query("month"))
	if err != nil || m > now {
		return now
	}
	return m
}

// clientOf reads the page of one client.
func clientOf(v *page.Request) (Page, error) {
	m := month(v)
	s, err := v.Site.Statements.OfClient(v.Ctx(), v.Client, m.String())
	p := Page{Address: v.Frame.Place.Base + "/statements", Name: v.Client.Account().Name, Month: m, Now: puntuale.MonthOf(v.Now().In(v.Frame.Zone)), First: v.Site.Statements.FirstOf(v.Client)}
	if m < p.First && puntuale.CodeOf(err) == puntuale.CodeInvalid {
		return p, nil
	}
	p.All = []statement.Of{s}
	if err == nil && m == p.Now {
		p.Budget, err = v.Site.Statements.Budget(v.Ctx(), v.Client)
	}
	return p, err
}

func clientStatement(v *page.Request) error {
	p, err := clientOf(v)
	if err != nil {
		return err
	}
	return v.Show(Client(p))
}

// partnerOf reads the page of all clients of a partner.
func partnerOf(v *page.Request) (Page, error) {
	m := month(v)
	all, err := v.Site.Statements.OfPartner(v.Ctx(), v.Partner, m.String())
	if err != nil {
		return Page{}, err
	}
	first, err := v.Site.Statements.First(v.Ctx(), v.Partner)
	if err != nil {
		return Page{}, err
	}
	own, err := v.Site.Statements.OwnPrices(v.Ctx(), v.Partner)
	return Page{Address: "/partner/statements", Month: m, Now: puntuale.MonthOf(v.Now().In(v.Frame.Zone)), First: first, All: all, Form: priceForm(v, own), Priced: len(own.Each) > 0}, err
}

func partnerStatements(v *page.Request) error {
	p, err := partnerOf(v)
	if err != nil {
		return err
	}
	return v.Show(Partner(p))
}

func priceForm(v *page.Request, own puntuale.Prices) *view.Form {
	f := view.NewForm("currency", cmp.Or(own.Currency, "EUR"))
	for category, each := range own.Each {
		f.Values.Set(category, strings.Replace(each, ".", v.T("campaign.point"), 1))
	}
	return f
}

func setPrices(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	own := puntuale.Prices{Currency: f.Value("currency"), Each: map[string]string{}}
	for _, category := range puntuale.OwnCategories {
		own.Each[category] = f.Value(category)
	}
	if err := v.Site.Statements.SetOwnPrices(v.Ctx(), v.Partner, own); err != nil {
		p, readErr := partnerOf(v)
		if readErr != nil {
			return readErr
		}
		p.Form = f
		return v.ShowRefused(err, f, PriceForm(f), Partner(p), append(slices.Clone(puntuale.OwnCategories), "currency")...)
	}
	v.Say("statement.prices_saved", "")
	return v.Redirect("/partner/statements")
}

func exportClient(v *page.Request) error {
	p, err := clientOf(v)
	if err != nil {
		return err
	}
	return export(v, p)
}

func exportPartner(v *page.Request) error {
	p, err := partnerOf(v)
	if err != nil {
		return err
	}
	return export(v, p)
}

// export sends the lines of statements as CSV. Numbers are written as in the API. A client's file has what the network bills only
// if its page has it. A file whose numbers may still change says so in its name, and in each row. So no row of it passes for one
// of a bill, also after a program has joined files.
func export(v *page.Request, p Page) error {
	toOwn, ownCurrency, network := "statement.column.to_bill", "statement.column.own_currency", true
	if p.Name != "" {
		toOwn, ownCurrency, network = "statement.column.to_pay", "statement.currency", slices.ContainsFunc(p.All, networkPriced)
	}
	header := []string{}
	for _, key := range []string{"client", "month", "corrects", "category", "country", "network", "origin", "source", "messages", "network_price", "currency"} {
		if network || key != "source" && key != "network_price" && key != "currency" {
			header = append(header, v.T("statement.column."+key))
		}
	}
	header = append(header, v.T(toOwn), v.T(ownCurrency), v.T("statement.column.state"))
	return v.SendCSV(fileName(v, p), header, func(string) ([][]string, string, error) { return rowsOf(p, network, len(header)), "", nil })
}

// rowsOf returns the rows of a file. A client of whose many messages none is counted yet has one row, so that it does not seem to
// have no messages.
func rowsOf(p Page, network bool, columns int) (rows [][]string) {
	for _, s := range p.All {
		if len(s.Lines) == 0 && !s.Complete {
			row := make([]string, columns)
			row[0], row[1], row[columns-1] = httpkit.InertCell(s.Name), p.Month.String(), stateWord(s)
			rows = append(rows, row)
		}
		for _, l := range s.Lines {
			corrects := ""
			if l.Month != 0 {
				corrects = l.Month.String()
			}
			row := []string{httpkit.InertCell(s.Name), p.Month.String(), corrects, l.Category, l.Country, string(l.Network), string(l.Origin)}
			if network {
				row = append(row, source(p, s, l), strconv.Itoa(l.Messages), l.Price, s.Currency)
			} else {
				row = append(row, strconv.Itoa(l.Messages))
			}
			rows = append(rows, append(row, statement.OwnPrice(s.Statement, l), s.Own.Currency, stateWord(s)))
		}
	}
	return rows
}

// stateWord says in a file, in words for programs, how final a statement is.
func stateWord(s Of) string {
	if !s.Complete {
		return "incomplete"
	}
	return map[statement.State]string{statement.Open: "open", statement.Closing: "closing", statement.Missed: "missed", statement.Closed: "closed"}[s.State]
}

// fileName returns the name of a file, which ends with the state of a month that is not closed, in the reader's words.
func fileName(v *page.Request, p Page) string {
	name := v.T("statement.file") + "-" + p.Month.String()
	var state string
	switch {
	case !p.complete():
		state = v.T("statement.partial")
	case p.state() != statement.Closed:
		state = v.T(p.stateKeys()[0])
	default:
		return name
	}
	return name + "-" + strings.ReplaceAll(strings.ToLower(state), " ", "-")
}

// source says in a file where the category of a line comes from; "" in a client's file, if the partner's price decides.
func source(p Page, s Of, l puntuale.StatementLine) string {
	if p.Name != "" && ownOnly(s, l) {
		return ""
	}
	return string(l.Source)
}

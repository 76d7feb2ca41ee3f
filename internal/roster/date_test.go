package roster

import (
	"strings"
	"testing"

	"puntuale"
)

// A column of dates is judged as a whole.
func TestDateColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cells []string
		want  string
	}{
		{[]string{"28/02/1990", "03/04/1992", ""}, "dmy certain"},
		{[]string{"02/28/1990", "03/04/1992"}, "mdy certain"},
		{[]string{"03/04/1992", "05/06/1993"}, "dmy"},
		{[]string{"1990-02-28", "2020-12-31 10:30"}, "dmy certain"},
		{[]string{"1990-02-28", "12/31/2020"}, "mdy certain"},
		{[]string{"28/02/1990", "02/28/1990"}, "? list.dates_mixed"},
		{[]string{"28/02/1990", "03/04/1992", "boh"}, "? list.dates_other"},
		{[]string{"28/02/1990", "31/31/1992", "01/01/1999"}, "? list.dates_other"},
		{[]string{"10.5.2026", "A-33"}, "text"},
		{[]string{"x", "y"}, "text"},
		{[]string{"", ""}, "text"},
		{[]string{"1.2.3", "28/2/90"}, "text"},
		{[]string{"31/12/26", "01/02/27"}, "? list.dates_short"},
		{[]string{"31/12/26", "12/31/26"}, "? list.dates_mixed"},
		{[]string{"31/12/2026", "01/02/27", "x", "y"}, "text"},
	} {
		var d DateColumn
		for i, cell := range c.cells {
			d.Add(i+2, cell)
		}
		order, question := d.Order(false)
		got := string(order)
		switch {
		case !question.IsZero():
			got = "? " + string(question.Code)
		case order == "":
			got = "text"
		case d.Certain():
			got += " certain"
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.cells, got, c.want)
		}
	}
	var known DateColumn
	for i, cell := range []string{"02/28/1990", "03/04/1992", "boh", "chissà", "-"} {
		known.Add(i+2, cell)
	}
	if _, question := known.Order(true); question.Code != QuestionDatesOther {
		t.Errorf("a column of dates with other cells: %v", question)
	}
	today := puntuale.Date{Year: 2026, Month: 11, Day: 30}
	for in, want := range map[string]string{
		"mdy scade 02/28/1990": "28/02/1990", "mdy scade 2-8-1990 10:30": "8-2-1990 10:30", "mdy scade 1990-02-28": "1990-02-28", "mdy scade x": "x",
		"dmy scade 02/28/1990": "02/28/1990", "dmy scade 31/12/26": "31/12/2026", "mdy scade 12/31/26": "31/12/2026", "dmy scade 30/11/46 10:30": "30/11/2046 10:30",
		"dmy scade 01/12/46": "01/12/1946", "dmy nascita 30/11/26": "30/11/2026", "dmy data_di_nascita 01/12/26": "01/12/1926", "dmy birthday 03.04.92": "03.04.1992",
		" scade 31/12/26": "31/12/26",
	} {
		order, rest, _ := strings.Cut(in, " ")
		field, cell, _ := strings.Cut(rest, " ")
		if got := DatesOf(field, DateOrder(order), today).DayFirst(cell); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

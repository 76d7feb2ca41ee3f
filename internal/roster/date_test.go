package roster

import (
	"fmt"
	"testing"
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
	} {
		var d DateColumn
		for i, cell := range c.cells {
			d.Add(i+2, cell)
		}
		order, question := d.Order()
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
	for in, want := range map[string]string{"02/28/1990": "28/02/1990", "2-8-1990 10:30": "8-2-1990 10:30", "1990-02-28": "1990-02-28", "x": "x"} {
		if got := DayFirstOf(in, MonthFirst); got != want {
			t.Errorf("%s became %s", in, got)
		}
		if got := DayFirstOf(in, DayFirst); got != in {
			t.Error(fmt.Sprint(in, " changed: ", got))
		}
	}
}

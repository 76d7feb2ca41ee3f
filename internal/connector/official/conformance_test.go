package official_test

import (
	"fmt"
	"strconv"
	"testing"

	"puntuale"
	"puntuale/internal/connector/connectortest"
	"puntuale/internal/connector/official/graphtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, func(t *testing.T) connectortest.Network {
		w := newWorld(t, setup{})
		const refused = "+393330009901"
		to := func(n int) string { return fmt.Sprintf("+39333000%04d", n) }
		var all []string
		for n := range 100 {
			all = append(all, to(n))
		}
		w.wrote(append(all, refused)...)
		w.peer.Answer(func(m graphtest.Message) graphtest.Reply {
			if m.To == refused {
				return graphtest.Reply{Code: 131026}
			}
			return graphtest.Reply{}
		})
		return connectortest.Network{
			Connector: w.conn, Client: w.c.ID, Session: w.session, To: to, Refused: refused,
			Shown:    func(t *testing.T) []connectortest.Shown { return shown(t, w.peer) },
			Contents: connectortest.Carries{Text: true, Media: true, Location: true},
		}
	})
}

// shown returns how people see the messages that the peer accepted.
func shown(t *testing.T, peer *graphtest.Peer) (all []connectortest.Shown) {
	t.Helper()
	for _, taken := range peer.Taken() {
		m := taken.Message
		var c puntuale.Content
		switch {
		case m.Text != nil:
			c.Text = m.Text.Body
		case m.Image != nil:
			c.MediaURL, c.Text = addressOf(peer.File(m.Image.ID)), m.Image.Caption
		case m.Document != nil:
			c.MediaURL, c.Text, c.MediaName = addressOf(peer.File(m.Document.ID)), m.Document.Caption, m.Document.Filename
		case m.Location != nil:
			latitude, err := strconv.ParseFloat(m.Location.Latitude, 64)
			if err != nil {
				t.Error(err)
			}
			longitude, err := strconv.ParseFloat(m.Location.Longitude, 64)
			if err != nil {
				t.Error(err)
			}
			c.Latitude, c.Longitude = &latitude, &longitude
		case m.Interactive != nil:
			c.Text = m.Interactive.Body.Text
			if a := m.Interactive.Action; a.Sections != nil {
				c.Interactive = &puntuale.Interactive{List: &puntuale.ChoiceList{}}
				for _, section := range a.Sections {
					shown := puntuale.ListSection{Title: section.Title}
					for _, r := range section.Rows {
						shown.Rows = append(shown.Rows, puntuale.ListRow{Title: r.Title, Text: r.Description})
					}
					c.Interactive.List.Sections = append(c.Interactive.List.Sections, shown)
				}
			} else if a.Link != nil {
				c.Interactive = &puntuale.Interactive{Link: &puntuale.LinkButton{Label: a.Link.Label, URL: a.Link.URL}}
			} else if a.Name != "" {
				c.Interactive = &puntuale.Interactive{Ask: puntuale.AskKind(a.Name)}
			} else {
				c.Asks = &puntuale.ButtonSet{}
			}
			for _, b := range m.Interactive.Action.Buttons {
				c.Asks.Buttons = append(c.Asks.Buttons, puntuale.StepButton{Label: b.Reply.Title})
			}
			if h := m.Interactive.Header; h != nil && h.Image != nil {
				c.MediaURL = addressOf(peer.File(h.Image.ID))
			}
		}
		all = append(all, connectortest.Shown{To: m.To, Content: c})
	}
	return all
}

package sendapp_test

import (
	"testing"

	"puntuale"
	"puntuale/internal/connector/connectortest"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

// TestConformance runs the suite with texts and media. It leaves out locations, because a location becomes a link (see
// TestLocation).
func TestConformance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		for _, newer := range []bool{false, true} {
			conforms(t, d, newer)
		}
	})
}

// conforms runs the suite against a gateway of the newer or the older generation.
func conforms(t *testing.T, d storetest.Driver, newer bool) {
	t.Run(map[bool]string{false: "older", true: "newer"}[newer], func(t *testing.T) {
		t.Parallel()
		connectortest.Run(t, func(t *testing.T) connectortest.Network {
			w := linked(t, d)
			if newer {
				w.peer.Newer()
			}
			const refused = "+393330009901"
			w.peer.Answer(func(s gatewaytest.Sent) gatewaytest.Reply {
				if "+"+s.To == refused {
					return gatewaytest.Reply{Refuse: "Recipient is required"}
				}
				return gatewaytest.Reply{}
			})
			return connectortest.Network{
				Connector: w.conn, Client: w.c.ID, Session: w.session, To: number, Refused: refused,
				Shown: func(*testing.T) (all []connectortest.Shown) {
					for _, s := range w.peer.Sent() {
						all = append(all, connectortest.Shown{To: "+" + s.To, Content: puntuale.Content{Text: s.Text, MediaURL: s.Media, MediaName: s.Filename}})
					}
					return all
				},
				Contents: connectortest.Carries{Text: true, Media: true},
			}
		})
	})
}

package control_test

import (
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// TestFollowersAreBounded: at most forty callers may follow one client's messages. Another caller is refused until one
// of the forty stops.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	client := newLimited(t, storetest.SQLite(t)).client
	var open []*control.Following
	defer func() {
		for _, f := range open {
			f.Stop()
		}
	}()
	follow := func() error {
		f, err := client.Follow("")
		if err == nil {
			open = append(open, f)
		}
		return err
	}
	for range 40 {
		if err := follow(); err != nil {
			t.Fatalf("after %d: %v", len(open), err)
		}
	}
	if err := follow(); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	open[0].Stop()
	open = open[1:]
	if err := follow(); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}

// TestPartnersShareWhatWaits: the clients of one partner cannot take all open pages and all waiting calls. Another
// partner's client still gets some.
func TestPartnersShareWhatWaits(t *testing.T) {
	t.Parallel()
	w := newLimited(t, storetest.SQLite(t))
	clientOf := func(id puntuale.ClientID, partner puntuale.PartnerID) *control.Client {
		return w.control.ClientFor(puntuale.Client{ID: id, Partner: partner, Zone: "Europe/Rome"}, puntuale.Actor{})
	}
	for name, take := range map[string]func(c *control.Client) (leave func(), err error){
		"pages": func(c *control.Client) (leave func(), err error) {
			f, err := c.Follow("")
			if err != nil {
				return nil, err
			}
			return f.Stop, nil
		},
		"waits": (*control.Client).Wait,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takes := func(c *control.Client) (n int) {
				for {
					leave, err := take(c)
					if puntuale.CodeOf(err) == puntuale.CodeRateLimited {
						return n
					}
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(leave)
					n++
				}
			}
			all := 0
			for i := range 60 {
				n := takes(clientOf(puntuale.ClientID(1000+i), 7))
				if n > 40 {
					t.Fatalf("one client has %d", n)
				}
				all += n
			}
			if most := map[string]int{"pages": 500, "waits": 1024}[name]; all != most {
				t.Errorf("one partner has %d, want %d", all, most)
			}
			if n := takes(clientOf(2000, 8)); n != 40 {
				t.Errorf("another partner's client has %d, want 40", n)
			}
		})
	}
}

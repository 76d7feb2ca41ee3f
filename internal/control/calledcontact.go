package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"puntuale"
	"puntuale/internal/plan"
)

// rememberAfter is how old a run must be before its recipient becomes a contact. After this time, every start with a
// smaller run id is stored or has failed. Therefore, a reader that continues after the last id misses no run.
const rememberAfter = 30 * time.Second

// If the client's settings say so, Remember adds every recipient of a call to the client's contacts. It also updates
// the contacts' fields from the calls. Any number of nodes may call Remember, at any time.
func (c *Control) Remember(ctx context.Context) error {
	if err := c.maintenance.Remember(ctx, rememberAfter, c.clock.Now().Truncate(time.Microsecond), c.calledContact); err != nil {
		return fmt.Errorf("remember people: %w", err)
	}
	return nil
}

// callMembers are the members of a call's body that are not fields.
var (
	callMembers = []string{columnPhone, "timezone", "text", "media", "media_name", "latitude", "longitude", "template", "id_sessione", "purpose", "if_running",
		"campaign", "automation", "occurrence"}
	singleMembers = []string{"name", "date"} // the members of a single send that are not fields: its name, and when it leaves
)

// calledContact makes a contact from a run. The contact's fields are the members of the run's call that are fields.
func (c *Control) calledContact(r puntuale.CalledRun) (puntuale.Contact, bool) {
	made := puntuale.Contact{Phone: r.Phone}
	var members map[string]json.RawMessage
	if !isPerson(r.Phone) || json.Unmarshal(r.Request, &members) != nil {
		return made, isPerson(r.Phone)
	}
	zone, err := c.zones.Load(r.Zone)
	if err != nil {
		zone = time.UTC // data of an older version may contain an unknown zone
	}
	k := contactCheck{zone: zone}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := plan.FromJSON(members[name])
		text := puntuale.Trimmed(value.Text)
		switch {
		case value.Kind != plan.Text && value.Kind != plan.Number || text == "" || strings.ContainsRune(text, 0),
			slices.Contains(callMembers, name), r.Origin == puntuale.OriginSingle && slices.Contains(singleMembers, name):
		case name == columnName, name == "name" && made.Name == "":
			if utf8.RuneCountInString(text) <= puntuale.MaxName {
				made.Name = norm.NFC.String(text)
			}
		case fieldNameFault(name) == "" && utf8.RuneCountInString(text) <= puntuale.MaxField && len(made.Fields) < puntuale.MaxContactFields:
			if made.Fields == nil {
				made.Fields = map[string]puntuale.ContactField{}
			}
			called := TypedValue(text, "")
			called.Number = value.Kind == plan.Number
			made.Fields[name] = *k.field(called)
		}
	}
	return made, true
}

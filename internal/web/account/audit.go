package account

import (
	"cmp"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// auditRoutes are the pages of a client's audit log. partnerRoutes contains the page of the partner's audit log.
var auditRoutes = []page.Route{
	page.Get("/c/{client}/audit", page.ClientSide, puntuale.Owner, clientAudit),
}

// partnerAudit shows the audit log of the partner's dashboard and of its clients' dashboards.
func partnerAudit(v *page.Request) error {
	rows, next, err := v.Partner.Audit(v.Ctx(), request.Page{Limit: page.RowsOfPage, Cursor: v.Query("cursor")})
	if err != nil {
		return page.Lost(err)
	}
	count, err := page.Total(v.Partner.CountAudit(v.Ctx()))
	if err != nil {
		return err
	}
	return audit(v, rows, count, "/partner/audit", next)
}

// clientAudit shows the audit log of the client's dashboard.
func clientAudit(v *page.Request) error {
	rows, next, err := v.Client.Audit(v.Ctx(), request.Page{Limit: page.RowsOfPage, Cursor: v.Query("cursor")})
	if err != nil {
		return page.Lost(err)
	}
	count, err := page.Total(v.Client.CountAudit(v.Ctx()))
	if err != nil {
		return err
	}
	return audit(v, rows, count, v.Frame.Place.Base+"/audit", next)
}

func audit(v *page.Request, entries []puntuale.AuditEntry, count int, url, next string) error {
	rows, err := (&namer{v: v, names: map[string]string{}, deleted: map[string]string{}, clients: map[puntuale.ClientID]*control.Client{}}).rows(entries)
	if err != nil {
		return err
	}
	return v.Show(Audit(rows, count, url, v.Query("cursor"), next))
}

// namer finds the names for the identifiers in the log, and reads each name only once. The log itself stores
// identifiers. An identifier is still correct when a name has changed, and reveals nothing about an erased person.
type namer struct {
	v       *page.Request
	names   map[string]string
	deleted map[string]string                     // names of deleted things, by identifier
	clients map[puntuale.ClientID]*control.Client // nil: the client does not exist any more
}

func (n *namer) rows(entries []puntuale.AuditEntry) ([]AuditRow, error) {
	rows := make([]AuditRow, len(entries))
	for i, e := range entries {
		row := AuditRow{AuditEntry: e}
		var err error
		if e.User == 0 && (e.Who == puntuale.ActorPage || e.Who == puntuale.ActorKey || strings.HasPrefix(e.Action, "campaign.")) {
			row.User = n.v.T(cmp.Or(map[string]string{puntuale.ActorKey: "audit.by_key", puntuale.ActorPage: "audit.by_page"}[e.Who], "audit.by_itself"))
			row.Who = row.User
		} else if row.User, err = n.user(e); err != nil {
			return nil, err
		}
		if e.Client != 0 && n.v.Client == nil {
			if row.Client, err = n.account(e.Client.String()); err != nil {
				return nil, err
			}
		}
		if err = n.setName(&row); err != nil {
			return nil, err
		}
		rows[i] = row
	}
	return rows, nil
}

// setName sets the name of an entry's object. The entry's target begins with the object's identifier. A former name or
// a detail may follow. The page shows the identifier when somebody points at the name.
func (n *namer) setName(row *AuditRow) (err error) {
	noun, verb, _ := strings.Cut(row.Action, ".")
	id, rest, _ := strings.Cut(row.Target, " ")
	if id == "" {
		return nil
	}
	if row.Action == puntuale.FailedSignIn {
		row.Kept = n.v.T("audit.wrong." + row.Target)
		if row.Times > 1 {
			row.Kept += " · " + n.v.T("audit.times", "N", int(row.Times))
		}
		return nil
	}
	if row.Action == "plan.apply" {
		return n.setApplied(row, rest)
	}
	if row.Action == "client.enter" { // its target is the client's name
		row.Kept = row.Target
		return nil
	}
	if row.AuditEntry.Client == 0 {
		switch noun {
		case "client", "key":
			if row.What, err = n.account(id); row.What != "" {
				row.URL = "/partner/clients/" + id
			}
		case "user":
			row.Kept = row.Target // such an object has no name except its e-mail address
			return nil
		}
	} else if row.What, err = n.clientObjectName(row.AuditEntry.Client, noun, verb, row.Target); row.What != "" && n.v.Client != nil {
		row.URL = n.page(noun, verb, id)
	}
	if row.Action == "message.all" || row.Action == "contact.all" || row.Action == "blacklist.import" { // an action on many messages or numbers has no identifier
		if row.What == "" {
			row.Kept = row.Target
		}
		return err
	}
	key := row.AuditEntry.Client.String() + " " + noun + " " + id
	if verb == "delete" && rest != "" {
		n.deleted[key] = rest
	} else {
		row.Kept = rest
	}
	if key := "campaign.reason." + rest; noun == "campaign" && rest != "" && n.v.Frame.Language.Has(key) {
		row.Kept = n.v.T(key)
	}
	if row.Action == "client.credits" {
		if credits, err := strconv.ParseInt(rest, 10, 64); err == nil {
			row.Kept = n.v.T("audit.credits", "Change", n.v.Frame.Language.Number(credits))
		}
	}
	row.What = cmp.Or(row.What, n.deleted[key])
	n.identify(row, id)
	return err
}

// namedOfApplied is how many clients that got a plan's values an entry names. It has the identifiers of all.
const namedOfApplied = 3

// setApplied names a plan and the clients that changed with it, from a target that ends with "17,18 Base".
func (n *namer) setApplied(row *AuditRow, target string) error {
	text, plan, _ := strings.Cut(target, " ")
	ids := strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
	row.What = n.v.T("audit.applied", "N", len(ids), "Plan", plan)
	names := make([]string, 0, namedOfApplied)
	for _, id := range ids[:min(len(ids), namedOfApplied)] {
		name, err := n.account(id)
		if err != nil {
			return err
		}
		names = append(names, cmp.Or(name, n.v.T("audit.identifier", "ID", id)))
	}
	row.Kept = strings.Join(names, ", ")
	if rest := ids[len(names):]; len(rest) > 0 {
		row.More, row.Rest = n.v.T("audit.more_clients", "N", len(rest)), n.v.T("audit.identifier", "ID", strings.Join(rest, ", "))
	}
	return nil
}

// identify sets the shown identifier. If there is no name, the page shows the identifier in the place of the name.
func (n *namer) identify(row *AuditRow, id string) {
	shown := id
	if _, err := strconv.ParseInt(id, 10, 64); err == nil {
		shown = n.v.T("audit.identifier", "ID", id)
		if row.What != "" {
			row.ID = shown
			return
		}
	}
	if row.Kept != "" {
		shown += " · " + row.Kept
	}
	row.Kept = shown
}

// page returns the address of the page of a client's object.
func (n *namer) page(noun, verb, id string) string {
	base := n.v.Frame.Place.Base
	switch noun {
	case "sequence", "session", "template", "campaign":
		return base + "/" + noun + "s/" + id
	case "message":
		if verb != "all" {
			return base + "/messages/" + id
		}
	}
	return ""
}

// clientObjectName returns the name of an object of a client.
func (n *namer) clientObjectName(client puntuale.ClientID, noun, verb, target string) (string, error) {
	c, err := n.client(client)
	if c == nil {
		return "", err
	}
	id, _, _ := strings.Cut(target, " ")
	switch noun {
	case "sequence":
		return n.once(client, noun, id, func() (string, error) { q, err := c.Sequence(n.v.Ctx(), id); return q.Name, err })
	case "session":
		return n.once(client, noun, id, func() (string, error) { s, err := c.Session(n.v.Ctx(), id); return s.Name, err })
	case "campaign":
		return n.once(client, noun, id, func() (string, error) { k, err := c.Campaign(n.v.Ctx(), id); return k.Name, err })
	case "template":
		return n.once(client, noun, id, func() (string, error) { t, err := c.Template(n.v.Ctx(), id); return t.Name, err })
	case "contact":
		if verb == "all" {
			return n.taggedText(target), nil
		}
	case "key":
		return n.once(client, noun, id, func() (string, error) { return keyName(c, n.v, id) })
	case "message":
		if verb == "all" {
			return n.bulkText(target), nil
		}
		return n.once(client, noun, id, func() (string, error) {
			found, err := c.Details(n.v.Ctx(), []string{id})
			if err != nil || len(found) == 0 {
				return "", err
			}
			return cmp.Or(found[0].SequenceName, n.v.T("audit.no_sequence")), nil
		})
	case "blacklist":
		if count, err := strconv.Atoi(target); err == nil && verb == "import" {
			return n.v.T("audit.numbers", "N", count), nil
		}
		return n.once(client, noun, id, func() (string, error) { b, err := c.BlacklistEntry(n.v.Ctx(), id); return view.Grouped(b.Phone), err })
	}
	return "", nil
}

// bulkText returns the text for an action that changed many messages, from a target such as "cancel pending 12".
func (n *namer) bulkText(target string) string {
	parts := strings.Fields(target)
	if len(parts) != 3 {
		return ""
	}
	count, err := strconv.Atoi(parts[2])
	key := "bulk." + parts[0] + "_done"
	if err != nil || !n.v.Frame.Language.Has(key) {
		return ""
	}
	return n.v.T(key, "N", count)
}

// taggedText returns the text for an action that tagged many contacts, from a target such as "add 12 estate".
func (n *namer) taggedText(target string) string {
	parts := strings.SplitN(target, " ", 3)
	key := map[string]string{"add": "contact.tagged", "remove": "contact.untagged"}[parts[0]]
	if len(parts) != 3 || key == "" {
		return ""
	}
	count, err := strconv.Atoi(parts[1])
	if err != nil {
		return ""
	}
	return n.v.T(key, "N", count, "Tag", parts[2])
}

// keyName finds the name of a key by the key's identifier, or by the beginning of the key.
func keyName(c *control.Client, v *page.Request, id string) (string, error) {
	keys, err := v.Site.Accounts.KeysOf(c).List(v.Ctx())
	for _, k := range keys {
		if k.Prefix == id || k.ID.String() == id {
			return k.Name, nil
		}
	}
	return "", err
}

// account returns the name of a client.
func (n *namer) account(id string) (string, error) {
	return n.once(0, "client", id, func() (string, error) { c, err := n.v.Partner.Account(n.v.Ctx(), id); return c.Name, err })
}

// user returns the name of the person who acted. It returns "" if the reader may not see this person any more.
func (n *namer) user(e puntuale.AuditEntry) (string, error) {
	id := strconv.FormatInt(int64(e.User), 10)
	if e.Client == 0 || e.Entry {
		if n.v.Partner == nil {
			return "", nil // for actions of the partner's users, a client sees only the address from which the user acted
		}
		return n.once(0, "user", id, func() (string, error) { u, err := n.v.Partner.Team().User(n.v.Ctx(), id); return u.Name, err })
	}
	c, err := n.client(e.Client)
	if c == nil {
		return "", err
	}
	return n.once(e.Client, "user", id, func() (string, error) { u, err := n.v.Site.Accounts.TeamOf(c).User(n.v.Ctx(), id); return u.Name, err })
}

// client returns the client in whose dashboard the action was done. It returns nil if the client does not exist any
// more.
func (n *namer) client(id puntuale.ClientID) (*control.Client, error) {
	if n.v.Client != nil && n.v.Client.ID() == id {
		return n.v.Client, nil
	}
	if c, known := n.clients[id]; known {
		return c, nil
	}
	c, err := n.v.Person.Client(n.v.Ctx(), id.String())
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		c, err = nil, nil
	}
	if err == nil {
		n.clients[id] = c
	}
	return c, err
}

// once calls the function read at most once for each object. It returns "" if the object does not exist.
func (n *namer) once(client puntuale.ClientID, noun, id string, read func() (string, error)) (string, error) {
	key := client.String() + " " + noun + " " + id
	if name, known := n.names[key]; known {
		return name, nil
	}
	name, err := read()
	switch puntuale.CodeOf(err) {
	case puntuale.CodeNotFound, puntuale.CodeInvalid:
		name, err = "", nil
	}
	if err == nil {
		n.names[key] = name
	}
	return name, err
}

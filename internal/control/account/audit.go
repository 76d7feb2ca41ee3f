package account

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Note writes an audit entry with the person's action and IP address. The entry belongs to the client's dashboard;
// client 0 means the partner's. target must not contain a phone number, a text or a key. Of target it writes at most
// [maxTarget] characters, and no bytes that a store refuses, because an action without an entry would be worse.
func (p *Person) Note(ctx context.Context, client puntuale.ClientID, action, target string, from netip.Addr) error {
	e := puntuale.AuditEntry{
		Client: client, User: p.user.ID, Who: p.user.Email, Entry: client != 0 && p.user.Client == 0, Action: action, Target: targetText(target), At: p.accounts.clock.Now(),
		Address: control.AddressText(from),
	}
	if err := p.reseller().tenant.AddAudit(ctx, e); err != nil {
		return fmt.Errorf("note what was done: %w", err)
	}
	return nil
}

// maxTarget is how many characters of an object's name an audit entry has at most.
const maxTarget = 4000

func targetText(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxTarget {
			text = text[:i]
			break
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
}

// fail writes an audit entry about a failed sign-in of these users. mark is the keyed hash under which the attempt was
// counted. action says whether the password or the code was wrong.
func (c *Accounts) fail(ctx context.Context, mark string, users []puntuale.User, action string, from netip.Addr) error {
	failures := make([]puntuale.SignInFailure, len(users))
	for i, u := range users {
		failures[i] = puntuale.SignInFailure{User: u, What: action, Address: control.AddressText(from)}
	}
	if err := c.signIns.Fail(ctx, mark, failures, c.clock.Now()); err != nil {
		return fmt.Errorf("note a failed sign-in: %w", err)
	}
	return nil
}

// Audit lists the audit entries of the partner's dashboard and of its clients' dashboards, newest first. Codes:
// invalid.
func (p *Partner) Audit(ctx context.Context, page request.Page) ([]puntuale.AuditEntry, string, error) {
	return control.Audit(ctx, p.tenant, 0, page)
}

// CountAudit counts the audit entries that Audit lists, up to [puntuale.MaxCounted]. all is true if n is the complete
// count.
func (p *Partner) CountAudit(ctx context.Context) (n int, all bool, err error) {
	return control.CountAudit(ctx, p.tenant, 0)
}

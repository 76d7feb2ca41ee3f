package control

import (
	"context"
	"fmt"
	"net/netip"

	"puntuale"
	"puntuale/internal/control/request"
)

// Audit lists the audit entries of the client's dashboard, newest first. Codes: invalid.
func (c *Client) Audit(ctx context.Context, page request.Page) ([]puntuale.AuditEntry, string, error) {
	return Audit(ctx, c.control.tenants.Partner(c.account.Partner), c.account.ID, page)
}

// Audit lists the audit entries of a client's dashboard, newest first. Client 0 means the dashboards of the partner and
// of all its clients. Codes: invalid.
func Audit(ctx context.Context, tenant puntuale.PartnerTenant, client puntuale.ClientID, page request.Page) ([]puntuale.AuditEntry, string, error) {
	rows, next, err := request.List(page, func(p puntuale.Page) ([]puntuale.AuditEntry, string, error) {
		return tenant.Audit(ctx, client, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list what was done: %w", err)
	}
	return rows, next, nil
}

// AddressText returns an IP address in the form of the audit log, or "" if the IP address is not known.
func AddressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

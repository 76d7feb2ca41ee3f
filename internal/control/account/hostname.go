package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"puntuale"
	"puntuale/internal/control/request"
)

// A partner's pages are served at the partner's own host name after the name is confirmed. There are two ways to
// confirm a name: a DNS record that only the name's owner can set, or a command of the operator. Until then the name is
// only requested, and other partners may request the same name.

// Resolver reads DNS records. [net.Resolver] is a Resolver.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// HostProof is the TXT record in DNS that proves a host name.
type HostProof struct {
	Name string // name of the record, such as _puntuale.messages.example.com
	Text string
}

const (
	proofLabel = "_puntuale."
	dnsWithin  = 5 * time.Second
)

// hostShape matches a host name in ASCII and small letters that has a domain. It does not match IP addresses.
var hostShape = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)

// hostName normalizes a host name. The text may have a port, a final dot, capitals or letters beyond ASCII. The result
// is the form that the server stores and compares.
func hostName(text string) (name string, ok bool) {
	name = strings.TrimSpace(text)
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name, err := idna.Lookup.ToASCII(name)
	name = strings.TrimSuffix(name, ".")
	return name, err == nil && len(name) <= 253 && hostShape.MatchString(name)
}

// ownHost returns the host name of the service's public address, or "" if the address has none.
func ownHost(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return ""
	}
	name, _ := hostName(u.Host)
	return name
}

// Codes of the faults that this file reports.
const (
	faultHostDNSSilent  puntuale.ReasonCode = "host.dns_silent"
	faultHostNoRecord   puntuale.ReasonCode = "host.no_record"
	faultHostNotHost    puntuale.ReasonCode = "host.not_host"
	faultHostOwnAddress puntuale.ReasonCode = "host.own_address"
)

// askedHost parses the host name that a partner requests. It returns "" if the partner requests none.
func (c *Accounts) askedHost(f *request.Faults, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	name, ok := hostName(text)
	switch {
	case !ok:
		f.Add("body.host", faultHostNotHost, text)
	case name == c.ownHost:
		f.Add("body.host", faultHostOwnAddress, text)
	}
	return name
}

// HostProof returns the record that proves that a host name is the partner's.
func (p *Partner) HostProof(name string) HostProof {
	return HostProof{proofLabel + name, "puntuale=" + p.accounts.vault.Mark("host name", idText(p.id), name)}
}

// ProveHost confirms the host name that the partner requested, if DNS contains the name's record now. Codes: not_found
// (no name is requested), invalid (there is no such record), conflict (the name is another partner's), busy (DNS did
// not answer), rate_limited.
func (p *Partner) ProveHost(ctx context.Context) error {
	h, err := p.tenant.Host(ctx)
	if err != nil {
		return fmt.Errorf("read the host name: %w", err)
	}
	name := h.Brand.Host
	switch {
	case name == "":
		return puntuale.NotFound(puntuale.NoHost)
	case h.Brand.Confirmed:
		return nil
	}
	var f request.Faults
	if p.accounts.askedHost(&f, name); len(f) > 0 { // the service's address may have changed since the partner requested the name
		return f.Err()
	}
	mark := p.accounts.mark("host", idText(p.id))
	if err := p.accounts.try(ctx, puntuale.SignInAttempt{Mark: mark, Free: triesOfHost}); err != nil {
		return err
	}
	if err := p.accounts.askDNS(ctx, p.HostProof(name)); err != nil {
		return err
	}
	if err := p.tenant.ConfirmHost(ctx, name); err != nil {
		return fmt.Errorf("confirm a host name: %w", err)
	}
	return p.accounts.forget(ctx, mark)
}

// askDNS looks for the record in DNS. If the name has no records, this is a fault. If the DNS server does not answer,
// askDNS returns busy.
func (c *Accounts) askDNS(ctx context.Context, proof HostProof) error {
	ctx, cancel := context.WithTimeout(ctx, dnsWithin)
	defer cancel()
	texts, err := c.resolver.LookupTXT(ctx, proof.Name+".") // the final dot makes the name fully qualified, so that the resolver does not add the machine's search domains
	if failed, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !failed.IsNotFound) {
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultHostDNSSilent), Err: err}
	}
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.TrimSpace(text) == proof.Text }) {
		return puntuale.Invalid(puntuale.Fault{Location: "body.host", Code: faultHostNoRecord})
	}
	return nil
}

// ConfirmHost is for operators. It confirms the host name that a partner requested. Codes: invalid, with a fault at the
// location confirm; not_found (the partner does not request this name); conflict (the name is another partner's).
func (c *Accounts) ConfirmHost(ctx context.Context, partner puntuale.PartnerID, text string) error {
	name, ok := hostName(text)
	switch {
	case !ok:
		return puntuale.Invalid(puntuale.Fault{Location: "confirm", Code: faultHostNotHost})
	case name == c.ownHost:
		return puntuale.Invalid(puntuale.Fault{Location: "confirm", Code: faultHostOwnAddress})
	}
	if err := c.tenants.Partner(partner).ConfirmHost(ctx, name); err != nil {
		return fmt.Errorf("confirm the host name of partner %d: %w", partner, err)
	}
	return nil
}

// WithdrawHost is for operators. It withdraws the confirmation of a partner's host name. Codes: not_found.
func (c *Accounts) WithdrawHost(ctx context.Context, partner puntuale.PartnerID) error {
	if err := c.tenants.Partner(partner).WithdrawHost(ctx); err != nil {
		return fmt.Errorf("withdraw the host name of partner %d: %w", partner, err)
	}
	return nil
}

package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	answerWithin = 5 * time.Second
	expiresSoon  = 14 * 24 * time.Hour
	maxHeaders   = 64 << 10
)

// lookAtPublic calls the public address, as a caller from the internet would, as far as this machine can.
func lookAtPublic(ctx context.Context, cfg *Config) []Finding {
	const subject = "public address"
	if cfg.PublicURL == "" {
		if cfg.Local {
			return found(subject, Warning, "Only this machine reaches the server, and no public address is set.", "To open it to the internet, put a proxy with TLS in front, and set --public-url.")
		}
		return found(subject, Fault, "The server listens on the network without TLS, and no public address is set: keys and passwords go over the network unencrypted.",
			"Put a proxy with TLS in front, set --public-url, and let --addr be 127.0.0.1:8080.")
	}
	u, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil // the check of the settings refuses it
	}
	if u.Scheme != "https" {
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return found(subject, Warning, cfg.PublicURL+" is for trials on this machine: Meta and Web Push need https.", "For real use set an https address.")
		}
		return found(subject, Fault, cfg.PublicURL+" has no TLS: keys and passwords go over the internet unencrypted.", "Get a certificate for the proxy, and set an https address.")
	}
	return cfg.call(ctx, u)
}

// call asks the public address for pages that show how the proxy is set up.
func (cfg *Config) call(ctx context.Context, u *url.URL) (all []Finding) {
	transport := &http.Transport{DialContext: cfg.Dial, TLSClientConfig: &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}, MaxResponseHeaderBytes: maxHeaders, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: answerWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base := strings.TrimSuffix(u.String(), "/")
	health, err := head(ctx, client, base+"/healthz")
	if err != nil {
		return found("public address", Fault, fmt.Sprintf("%s does not answer: %s.", base, reachText(err)), reachAdvice(err))
	}
	if health.status != http.StatusOK {
		return found("public address", Fault, fmt.Sprintf("%s/healthz answers %d, and not 200.", base, health.status), "Let the proxy pass every path to this server, and check that the server runs.")
	}
	all = found("public address", OK, base+" answers.", "")
	if !health.ends.IsZero() {
		all = append(all, certificate(health.ends, cfg.Now))
	}
	api, err := head(ctx, client, base+"/api") // the answer does not matter, only its headers
	if err != nil || !api.strict {
		all = append(all, Finding{"proxy", Fault, "The server does not notice that callers use https: cookies are not Secure, and sign-in attempts of all people count as one machine's.",
			"Let the proxy set X-Forwarded-Proto and X-Forwarded-For, and name it in --trusted-proxies (docs/operate.md has blocks for nginx and Caddy)."})
	} else {
		all = append(all, Finding{"proxy", OK, "It passes the headers on, and the server trusts it.", ""})
	}
	if figures, err := head(ctx, client, base+"/metrics"); err == nil && figures.status == http.StatusOK {
		all = append(all, Finding{"metrics", Warning, "Everybody on the internet can read " + base + "/metrics.", "Set --metrics-addr 127.0.0.1:9090, or let the proxy answer 404."})
	}
	return all
}

func certificate(ends, now time.Time) Finding {
	left := ends.Sub(now)
	text := fmt.Sprintf("The certificate is valid until %s.", ends.UTC().Format(time.DateOnly))
	if left < expiresSoon {
		return Finding{"TLS", Warning, text, "Renew it, and find out why it was not renewed by itself."}
	}
	return Finding{"TLS", OK, text, ""}
}

// proxyAnswer is what the doctor reads of an answer.
type proxyAnswer struct {
	status int
	strict bool      // true: browsers shall use only https, so the server noticed that the caller did
	ends   time.Time // of the certificate; zero: there is none
}

func head(ctx context.Context, client *http.Client, address string) (a proxyAnswer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return a, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return a, err
	}
	a.status, a.strict = answer.StatusCode, answer.Header.Get("Strict-Transport-Security") != ""
	if answer.TLS != nil && len(answer.TLS.PeerCertificates) > 0 {
		a.ends = answer.TLS.PeerCertificates[0].NotAfter
	}
	return a, answer.Body.Close()
}

// reachText returns the reason without the address, which the finding names already.
func reachText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

func reachAdvice(err error) string {
	var dns *net.DNSError
	var wrong *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "Let the name point to the proxy in DNS."
	case errors.As(err, &wrong):
		return "Give the proxy a valid certificate for this name."
	}
	return "Start the proxy, and open ports 80 and 443. If only callers from outside reach the address, look from there."
}

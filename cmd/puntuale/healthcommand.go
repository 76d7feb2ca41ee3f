package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"puntuale/internal/client"
)

// healthCommand asks a running server whether it is ready, as a load balancer does with /readyz. A container without a
// shell has no other program for this. Scripts that restart servers one after the other also use the command.
type healthCommand struct {
	serveSettings `embed:""`
	Wait          time.Duration `local:"" placeholder:"DURATION" default:"0s" help:"Go on asking for so long until the answer is yes."`
}

const (
	askTimeout  = 3 * time.Second // the server's own checks take less time
	askInterval = 200 * time.Millisecond
)

func (c *healthCommand) Run(ctx context.Context, p *program) error {
	asker := client.New("http://"+askedAt(c.Addr), "", p.clock)
	asker.Transport = &http.Transport{Proxy: nil, DisableKeepAlives: true}
	deadline := p.clock.Now().Add(c.Wait)
	for {
		within, cancel := context.WithTimeout(ctx, askTimeout)
		err := asker.Ready(within)
		cancel()
		if err == nil {
			_, err = fmt.Fprintln(p.stdout, "ready")
			return err
		}
		if !p.clock.Now().Add(askInterval).Before(deadline) {
			return fmt.Errorf("not ready: %w", err)
		}
		timer, release := p.clock.After(askInterval)
		select {
		case <-timer:
		case <-ctx.Done():
			release()
			return fmt.Errorf("not ready: %w", err)
		}
	}
}

// askedAt returns the address of a server that listens at addr, for a program on the same machine.
func askedAt(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // the check of the settings refuses this address later
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

package main

import (
	"fmt"
	"net/netip"

	"puntuale/internal/auth"
	"puntuale/internal/connector/sendapp"
	"puntuale/internal/media"
)

// openGateways makes the connector to gateways. Every node has it, because the requests of gateways to their webhooks
// may arrive at any node that answers calls.
func (s *server) openGateways(cfg serverConfig, vault *auth.Vault) {
	allowed, _ := networksOf(cfg.GatewayAllow) // the check of the settings has already parsed these networks
	c := sendapp.Config{
		Store: s.store, Seal: vault.Seal, Unseal: vault.Open, Mark: vault.Mark, Address: s.control.FileAddress, Transport: media.Transport(allowed), Memory: s.payer(), Public: cfg.PublicURL,
		Report: s.report, ReadBody: readDelivery, Take: s.networks.intake.Take, Clock: cfg.Clock, Logger: cfg.Logger,
	}
	if s.media != nil {
		c.Media = s.files()
	}
	s.networks.sendapp = sendapp.New(c)
}

// networksOf reads a list of networks that are not public, in which gateways or receivers of webhooks are allowed.
func networksOf(list []string) (all []netip.Prefix, err error) {
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.1.2.0/24", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

package store

import "puntuale"

// tenant is a client's handle: every statement of its methods carries the client's id.
type tenant struct {
	s  *Store
	id puntuale.ClientID
}

// partnerTenant is a partner's handle.
type partnerTenant struct {
	s  *Store
	id puntuale.PartnerID
}

// Tenant returns the handle that reaches what belongs to the client, and nothing else. It asks nothing of the database.
func (s *Store) Tenant(id puntuale.ClientID) puntuale.Tenant { return tenant{s, id} }

// Partner returns the handle that reaches the partner's clients, and nothing else.
func (s *Store) Partner(id puntuale.PartnerID) puntuale.PartnerTenant { return partnerTenant{s, id} }

// tenantWriter is the writer of a client's calls, always the same of this node.
func (s *Store) tenantWriter(id puntuale.ClientID) *writer {
	return s.tenants[uint64(id)%uint64(len(s.tenants))]
}

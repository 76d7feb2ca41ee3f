package account

import (
	"strconv"

	"puntuale"
)

// Snapshot is a client in the form of the contract. It has exactly the contract's members.
type Snapshot struct {
	Name       string   `json:"account_name"`
	Login      string   `json:"login" doc:"Login e-mail"`
	Phone      string   `json:"phone"`
	Connection string   `json:"connection_type" enum:"Socket,Send_app,Official" doc:"Of the default session"`
	Profile    string   `json:"profile" enum:"Account gratuito,Fase di Test,Subscription Mensile,Subscription Annuale"`
	Credits    string   `json:"credits" doc:"What is left, less what is reserved, or Illimitati"`
	Refill     string   `json:"refill_period" enum:"Nessuno,Mensile,Annuale"`
	Expires    *string  `json:"expiration_date" format:"date" doc:"Last day of service; null when it does not expire"`
	Features   []string `json:"active_features"`
}

// SnapshotOf returns a client's snapshot.
func SnapshotOf(c puntuale.Client) Snapshot {
	s := Snapshot{
		Name: c.Name, Login: c.Email, Phone: c.Phone, Connection: string(c.Connection), Profile: c.Profile, Credits: puntuale.UnlimitedCredits,
		Refill: c.Refill, Features: append([]string{}, c.Features...),
	}
	if c.Credits != nil {
		s.Credits = strconv.FormatInt(*c.Credits, 10)
	}
	if !c.Expires.IsZero() {
		s.Expires = new(c.Expires.String())
	}
	return s
}

package httpapi

import (
	"context"

	"puntuale"
	"puntuale/internal/control"
)

// officialBody documents what an Official session needs to reach Meta.
type officialBody struct {
	PhoneNumberID string `json:"phone_number_id" maxLength:"64" pattern:"^[0-9]+$" doc:"Meta's id of the number, not the number. A number is taken too."`
	AccessToken   string `json:"access_token" minLength:"1" maxLength:"4096" doc:"Of a system user, with the permission whatsapp_business_messaging"`
	AppSecret     string `json:"app_secret" minLength:"1" maxLength:"4096" doc:"Of the app that the token belongs to"`
	VerifyToken   string `json:"verify_token" minLength:"1" maxLength:"4096" doc:"Chosen by you, and given to Meta with the webhook's address"`
}

func readKeys(o *object) *puntuale.OfficialKeys {
	return &puntuale.OfficialKeys{
		PhoneNumberID: o.id("phone_number_id"), AccessToken: o.text("access_token"), AppSecret: o.text("app_secret"), VerifyToken: o.text("verify_token"),
	}
}

func setOfficialKeys(ctx context.Context, c *control.Client, in *call, p *oneInput) (sessionAnswer, error) {
	body, err := in.object()
	if err != nil {
		return sessionAnswer{}, err
	}
	asked := control.NewKeys{OfficialKeys: *readKeys(body)}
	if err := body.err(); err != nil {
		return sessionAnswer{}, err
	}
	asked.Faults = *body.refused
	found, err := c.SetKeys(ctx, p.ID, asked)
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

type testAnswer struct {
	OK      bool          `json:"ok" doc:"Whether messages leave now"`
	Message string        `json:"message" doc:"What is wrong, in plain words, or that nothing is"`
	Session sessionAnswer `json:"session"`
}

func testSession(ctx context.Context, c *control.Client, _ *call, p *oneInput) (testAnswer, error) {
	found, err := c.TestSession(ctx, p.ID)
	if err != nil {
		return testAnswer{}, err
	}
	answer := testAnswer{OK: found.State == puntuale.LinkOnline && found.Detail == "", Message: found.Detail, Session: sessionOf(found)}
	switch {
	case answer.OK:
		answer.Message = "Tutto a posto: il numero può inviare"
		if found.Number != "" {
			answer.Message = "Tutto a posto: il numero " + found.Number + " può inviare"
		}
	case answer.Message == "":
		answer.Message = "Il numero non è ancora collegato, riprova tra poco"
	}
	return answer, nil
}

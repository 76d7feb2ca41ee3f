package httpapi

import (
	"context"

	"puntuale/internal/control"
)

// gatewayBody documents the address, token and instance with which a Send_app session reaches its gateway.
type gatewayBody struct {
	BaseURL     string `json:"base_url,omitempty" format:"uri" maxLength:"2048" doc:"Of the API of a gateway of SendApp's family; else SendApp Cloud's"`
	AccessToken string `json:"access_token" minLength:"1" maxLength:"512" doc:"Of the account at the gateway"`
	InstanceID  string `json:"instance_id,omitempty" maxLength:"64" doc:"Of a number that is there already; without it, linking makes one"`
}

// gatewayKeysBody documents the body of the call that changes a gateway's address, token or instance. If a member is
// missing, its value does not change.
type gatewayKeysBody struct {
	BaseURL     string `json:"base_url,omitempty" format:"uri" maxLength:"2048" doc:"Another one needs access_token, too, and has no instance_id unless one is given"`
	AccessToken string `json:"access_token,omitempty" maxLength:"512"`
	InstanceID  string `json:"instance_id,omitempty" maxLength:"64"`
}

func setGateway(ctx context.Context, c *control.Client, in *call, p *oneInput, body *gatewayKeysBody) (sessionAnswer, error) {
	found, err := c.SetGateway(ctx, p.ID, control.NewGateway{BaseURL: body.BaseURL, AccessToken: body.AccessToken, InstanceID: body.InstanceID, Faults: in.refused})
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

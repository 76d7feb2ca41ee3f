package httpapi

import (
	"context"
	"net/http"

	"puntuale/internal/control/account"
)

func registerClients(a *api) {
	partnerOnce(a, operation{
		id: "createClient", method: http.MethodPost, path: "/api/client/create",
		summary:  "Create a client account with its login, its default session and its first key",
		body:     clientBody{},
		refusals: []int{http.StatusConflict},
	}, withBody(createClient))
}

// clientBody documents the body of the call that creates a client.
type clientBody struct {
	Name     string `json:"name" minLength:"1" maxLength:"200"`
	Email    string `json:"email" minLength:"3" maxLength:"320" doc:"Login e-mail: an @ between two parts, unique among the partner's logins"`
	Password string `json:"password" minLength:"1"`
	Phone    string `json:"phone" read:"phone" minLength:"1" maxLength:"200" doc:"A number is taken too"`
	Type     string `json:"account_type,omitempty" enum:"test,baby,full" default:"full" doc:"test: 100 credits, expires after 14 days. baby: 2000 credits a year. full: no limitation"`
	Sandbox  *bool  `json:"sandbox,omitempty" doc:"Whether the simulated network takes the default session's messages; else as the server is set"`
}

type clientAnswer struct {
	ID        string `json:"id_client"`
	Session   string `json:"id_sessione"`
	Key       string `json:"api_key" doc:"The client's key, shown only now"`
	Name      string `json:"nome_account"`
	Phone     string `json:"telefono"`
	Email     string `json:"email_di_login"`
	Type      string `json:"account_type" enum:"test,baby,full"`
	Timestamp string `json:"timestamp" format:"date-time" doc:"Time of the call"`
}

func createClient(ctx context.Context, p *account.Partner, in *call, q *OnceInput, body *clientBody) (clientAnswer, error) {
	created, err := p.CreateClient(ctx, account.NewClient{
		Name: body.Name, Email: body.Email, Password: body.Password, Phone: body.Phone, Type: body.Type, Sandbox: body.Sandbox, Faults: in.refused,
	}, once(in, q, createdOf))
	if err != nil {
		return clientAnswer{}, err
	}
	return createdOf(created), nil
}

func createdOf(created account.CreatedClient) clientAnswer {
	account := created.Account
	return clientAnswer{
		ID: created.ID.String(), Session: created.Session.String(), Key: created.Key, Name: account.Name,
		Phone: account.Phone, Email: account.Email, Type: string(account.Type), Timestamp: stamp(account.Created),
	}
}

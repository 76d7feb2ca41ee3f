package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// signature signs a body according to Standard Webhooks 1.0.0, once with each secret. A receiver accepts the body if it
// has one of the secrets.
func signature(secrets [][]byte, id string, at time.Time, body []byte) string {
	signed := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signed[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signed, " ")
}

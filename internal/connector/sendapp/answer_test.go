package sendapp

import (
	"testing"

	"puntuale"
)

// TestEnglish: each sentence for people has an English one.
func TestEnglish(t *testing.T) {
	t.Parallel()
	all := []string{
		saysNoKeys, saysNoNumber, saysSilent, saysOffline, saysNoPublic, saysNoHook, saysRestricted, saysUnproven,
		saysExpired, saysNoCode, saysPairAgain, saysApproved, saysInterrupted, saysRecipient,
	}
	for _, r := range rules {
		all = append(all, r.says)
	}
	for _, says := range all {
		if puntuale.English(says) == says {
			t.Errorf("%q has no English", says)
		}
	}
}

package auth

import (
	"strings"
	"unicode/utf8"
)

// MinPassword is the least length of a password that is not weak, in characters.
const MinPassword = 10

// MaxPassword is the length of the longest password, in bytes.
const MaxPassword = 1024

// common contains passwords, and beginnings of passwords, that attackers try first.
var common = []string{
	"password", "passw0rd", "123456", "qwerty", "asdfgh", "abc123", "111111", "000000", "letmein", "welcome", "admin", "iloveyou", "monkey",
	"dragon", "football", "sunshine", "princess", "master", "login", "changeme", "secret", "default", "test", "1q2w3e", "zaq12wsx", "1qaz2wsx",
	"benvenuto", "ciaociao", "juventus", "forzamilan", "forzainter", "forzaroma", "forzanapoli", "francesco", "alessandro", "giuseppe", "amoremio", "tiamo",
	"buongiorno", "segreto", "prova", "whatsapp", "puntuale",
}

// Weak reports whether a password is too easy to guess. Such a password is short, repeats a few characters, is very
// common, or consists of facts about its owner. The argument about contains these facts.
func Weak(plain string, about ...string) bool {
	small := strings.ToLower(plain)
	if utf8.RuneCountInString(plain) < MinPassword {
		return true
	}
	different := map[rune]bool{}
	for _, r := range small {
		different[r] = true
	}
	if len(different) < 5 {
		return true
	}
	known := make([]string, 0, len(common)+2*len(about))
	known = append(known, common...)
	for _, text := range about {
		text = strings.ToLower(strings.TrimSpace(text))
		name, _, _ := strings.Cut(text, "@")
		known = append(known, text, name)
	}
	for _, word := range known {
		if utf8.RuneCountInString(word) < 4 {
			continue
		}
		// If the password begins with this word, the rest must have at least half of MinPassword characters.
		if rest, found := strings.CutPrefix(small, word); found && utf8.RuneCountInString(rest) < MinPassword/2 {
			return true
		}
	}
	return false
}

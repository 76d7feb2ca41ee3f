package price

import "github.com/nyaruka/phonenumbers"

// Country is that of a phone number, two letters; "" for none, and for what is no number.
func Country(phone string) string {
	n, err := phonenumbers.Parse(phone, "")
	if err != nil {
		return ""
	}
	country := phonenumbers.GetRegionCodeForNumber(n)
	if country == "" { // of a range that nobody knows yet
		country = phonenumbers.GetRegionCodeForCountryCode(int(n.GetCountryCode()))
	}
	if !letters(country, 2) || country == "ZZ" { // 001 is for numbers of no country
		return ""
	}
	return country
}

package control

import "puntuale"

// hint says in plain words what to do about a session, in every state. It is the same for programs and pages.
func (s Session) hint() string {
	switch s.Condition {
	case puntuale.Connecting:
		return "Attendi qualche secondo: il numero si sta collegando a WhatsApp."
	case puntuale.Waiting:
		return "Non devi fare nulla: il servizio si ricollega da solo. Se dura, controlla che il telefono sia acceso e connesso a Internet."
	case puntuale.Banned:
		return "WhatsApp ha sospeso il numero: attendi la fine della sospensione, poi scrivi meno a chi non ti conosce. I messaggi restano in attesa."
	case puntuale.Outdated:
		return "WhatsApp richiede una versione più recente: il servizio la cerca da solo. Se dura più di un'ora, va aggiornato."
	case puntuale.Replaced:
		return "Un altro programma usa questo collegamento: chiudilo, poi riconnetti il numero. I messaggi restano in attesa."
	case puntuale.LoggedOut:
		return "Il collegamento è stato tolto dal telefono o da WhatsApp: collega di nuovo il numero. I messaggi restano in attesa e partiranno."
	case puntuale.NeedsPasskey:
		return "Il telefono chiede una passkey, che qui non si può dare: su WhatsApp apri Impostazioni, Account, Passkey, eliminala e ripeti il collegamento."
	}
	switch {
	case s.State == puntuale.LinkUnlinked && s.Type == puntuale.Official && !s.Sandbox:
		return "Inserisci, o correggi, le credenziali di Meta del numero."
	case s.State == puntuale.LinkUnlinked && s.ByDevice():
		return "Collega un telefono o un programma: chiedi un codice e inseriscilo nel dispositivo."
	case s.ByDevice():
		return "Non devi fare nulla: i messaggi in scadenza appaiono sui dispositivi collegati."
	case s.State == puntuale.LinkUnlinked && s.toGateway():
		return "Collega il numero al gateway: avvia il collegamento e inquadra il codice QR con WhatsApp, in Dispositivi collegati, Collega un dispositivo. Se il token è cambiato, sostituisci le credenziali."
	case s.State == puntuale.LinkUnlinked:
		return "Collega il numero: avvia il collegamento e inquadra il codice QR con WhatsApp, in Dispositivi collegati, Collega un dispositivo."
	case s.State == puntuale.LinkPairing && s.Code != nil && s.Code.Method == puntuale.PairCode:
		return "Scrivi il codice sul telefono: WhatsApp, Dispositivi collegati, Collega un dispositivo, Collega con numero di telefono."
	case s.State == puntuale.LinkPairing && s.Code != nil:
		return "Inquadra il codice QR con il telefono: WhatsApp, Dispositivi collegati, Collega un dispositivo."
	case s.State == puntuale.LinkPairing:
		return "Attendi il codice, poi conferma sul telefono."
	case s.State == puntuale.LinkLinked:
		return "Attendi: il servizio riprova da solo, e i messaggi restano in attesa."
	case !s.Limited.IsZero():
		return "Non devi fare nulla: WhatsApp limita per ora i nuovi contatti, che riprendono da soli. A chi ti conosce i messaggi partono."
	}
	return "Non devi fare nulla: il numero è collegato e i messaggi partono."
}

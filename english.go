package puntuale

import "strings"

// english are the sentences that people read about sessions, and about the templates and messages of Official ones, as
// Italian has them.
var english = []struct{ italian, english string }{
	{"Mancano le credenziali di Meta", "Meta's keys are missing"},
	{"I server di Meta non rispondono alla verifica del numero", "Meta's servers do not answer about the number"},
	{"I server di Meta non rispondono, riprova tra poco", "Meta's servers do not answer, try again soon"},
	{"I server di Meta non rispondono", "Meta's servers do not answer"},
	{"phone_number_id non esiste, o il token non può vederlo", "phone_number_id does not exist, or the token may not see it"},
	{"business_account_id non esiste, o il token non può vederlo", "business_account_id does not exist, or the token may not see it"},
	{"business_account_id non è l'account a cui appartiene il numero", "business_account_id is not the account that the number belongs to"},
	{"app_secret errato: non è quello dell'app a cui appartiene il token", "app_secret is wrong: it is not that of the app which the token belongs to"},
	{"Token di accesso scaduto o revocato: creane uno nuovo in Meta Business e sostituiscilo", "The access token has expired or was revoked: make a new one in Meta Business and replace it"},
	{"Token di accesso scaduto o revocato", "The access token has expired or was revoked"},
	{"Il token non ha il permesso whatsapp_business_management", "The token lacks the permission whatsapp_business_management"},
	{"Il token non ha i permessi per inviare messaggi da questo numero", "The token may not send messages from this number"},
	{"Numero non registrato sull'API di Meta, o phone_number_id errato", "The number is not registered with Meta's API, or phone_number_id is wrong"},
	{"Meta rifiuta la richiesta: ", "Meta refuses the request: "},
	{"Invii limitati da Meta per segnalazioni di spam", "Meta limits what the number sends because people reported spam"},
	{"Account limitato da Meta per template nella categoria sbagliata", "Meta limits the account because of templates in the wrong category"},
	{"Problema con il pagamento dell'account WhatsApp Business", "The WhatsApp Business account has a payment problem"},
	{"Account bloccato temporaneamente da Meta per violazione delle regole", "Meta blocks the account for a while because of its rules"},
	{"Account bloccato da Meta", "Meta blocks the account"},
	{"L'account non può scrivere a destinatari di questo paese", "The account may not write to people of this country"},
	{"Account in manutenzione presso Meta", "Meta is working on the account"},
	{"WhatsApp non disponibile al momento", "WhatsApp is not available at the moment"},
	{"Tutto a posto: il numero può inviare", "All is well: the number can send"},
	{"Tutto a posto: il numero ", "All is well, this number can send: "},
	{"Il numero non è ancora collegato, riprova tra poco", "The number is not linked yet, try again soon"},

	{SaysTemplatePaused, "The template is paused because of its quality"},
	{SaysTemplateDisabled, "The template is disabled because of its quality"},
	{"Template in attesa di approvazione da parte di WhatsApp", "The template waits for WhatsApp's approval"},
	{"Template respinto da WhatsApp, ricorso in corso", "WhatsApp rejected the template, an appeal is under way"},
	{"Template respinto da WhatsApp", "WhatsApp rejected the template"},
	{"Template eliminato su WhatsApp", "The template was deleted at WhatsApp"},
	{"Troppi template nell'account WhatsApp Business", "The WhatsApp Business account has too many templates"},
	{"Template non esistente o non approvato in questa lingua", "The template does not exist, or is not approved in this language"},
	{"Il testo del template è troppo lungo", "The template's text is too long"},
	{"Il template viola le regole di WhatsApp", "The template breaks WhatsApp's rules"},
	{"Template non utilizzabile su WhatsApp", "The template cannot be used at WhatsApp"},
	{"I valori non corrispondono al template approvato", "The values do not fit the approved template"},
	{"Fuori dalla finestra di 24 ore: serve un template approvato", "Outside of the 24-hour window: an approved template is needed"},
	{"Ai gruppi si scrive solo con la Groups API di Meta, che questo account non usa", "Groups are written to by Meta's Groups API only, which this account does not use"},
	{"Da un numero ufficiale si scrive ai gruppi solo con l'id che dà la Groups API di Meta", "An Official number writes to groups only by the id that Meta's Groups API gives them"},
	{"Troppi messaggi al secondo per questo numero", "Too many messages a second for this number"},
	{"Troppi messaggi in poco tempo a questo destinatario", "Too many messages to this recipient in a short time"},
	{"Raggiunto il limite di nuovi destinatari in 24 ore", "As many people were addressed in 24 hours as the number may"},
	{"Tipo di messaggio non ammesso", "This kind of message is not allowed"},
	{"File rifiutato da WhatsApp", "WhatsApp refuses the file"},
	{"Messaggio non accettato da WhatsApp", "WhatsApp does not accept the message"},
	{"Mittente e destinatario sono lo stesso numero", "Sender and recipient are the same number"},
	{"Il destinatario non riceve su WhatsApp", "The recipient cannot be reached on WhatsApp"},
	{"Destinatario bloccato dall'account", "The account blocks this recipient"},
	{"Il destinatario non vuole messaggi di marketing", "The recipient wants no marketing messages"},
	{"Limite di WhatsApp ai messaggi di marketing per questo destinatario", "WhatsApp limits marketing messages to this recipient"},
	{"Destinatario in un esperimento di WhatsApp: per ora non riceve", "The recipient is in an experiment of WhatsApp's and cannot be reached for now"},
	{"WhatsApp non ammette un testo insieme a un audio", "WhatsApp allows no text together with an audio file"},
	{"WhatsApp non accetta questo tipo di file", "WhatsApp does not take this kind of file"},
	{"Senza un template approvato parte solo entro 24 ore dall'ultimo messaggio del destinatario", "Without an approved template it leaves only within 24 hours of the recipient's last message"},

	{"Attendi qualche secondo: il numero si sta collegando a WhatsApp.", "Wait a few seconds: the number is connecting to WhatsApp."},
	{"Non devi fare nulla: il servizio si ricollega da solo. Se dura, controlla che il telefono sia acceso e connesso a Internet.",
		"There is nothing to do: the service connects again by itself. If it lasts, see that the phone is on and has Internet."},
	{"WhatsApp ha sospeso il numero: attendi la fine della sospensione, poi scrivi meno a chi non ti conosce. I messaggi restano in attesa.",
		"WhatsApp suspended the number: wait until that ends, then write less to people who do not know you. Messages wait."},
	{"WhatsApp richiede una versione più recente: il servizio la cerca da solo. Se dura più di un'ora, va aggiornato.",
		"WhatsApp asks for a later version: the service looks for it by itself. If it lasts more than an hour, it needs an update."},
	{"Un altro programma usa questo collegamento: chiudilo, poi riconnetti il numero. I messaggi restano in attesa.",
		"Another program uses this link: close it, then reconnect the number. Messages wait."},
	{"Il collegamento è stato tolto dal telefono o da WhatsApp: collega di nuovo il numero. I messaggi restano in attesa e partiranno.",
		"The phone, or WhatsApp, removed the link: link the number again. Messages wait, and will leave."},
	{"Il telefono chiede una passkey, che qui non si può dare: su WhatsApp apri Impostazioni, Account, Passkey, eliminala e ripeti il collegamento.",
		"The phone asks for a passkey, which cannot be given here: in WhatsApp open Settings, Account, Passkeys, delete it and link again."},
	{"Inserisci, o correggi, le credenziali di Meta del numero.", "Enter, or correct, the number's keys of Meta."},
	{"Collega il numero: avvia il collegamento e inquadra il codice QR con WhatsApp, in Dispositivi collegati, Collega un dispositivo.",
		"Link the number: begin, and scan the QR code with WhatsApp, in Linked devices, Link a device."},
	{"Scrivi il codice sul telefono: WhatsApp, Dispositivi collegati, Collega un dispositivo, Collega con numero di telefono.",
		"Type the code into the phone: WhatsApp, Linked devices, Link a device, Link with phone number."},
	{"Inquadra il codice QR con il telefono: WhatsApp, Dispositivi collegati, Collega un dispositivo.",
		"Scan the QR code with the phone: WhatsApp, Linked devices, Link a device."},
	{"Attendi il codice, poi conferma sul telefono.", "Wait for the code, then confirm on the phone."},
	{"Attendi: il servizio riprova da solo, e i messaggi restano in attesa.", "Wait: the service tries again by itself, and messages wait."},
	{"Non devi fare nulla: WhatsApp limita per ora i nuovi contatti, che riprendono da soli. A chi ti conosce i messaggi partono.",
		"There is nothing to do: WhatsApp limits new contacts for now, which go on by themselves. To people who know you messages leave."},
	{"Non devi fare nulla: il numero è collegato e i messaggi partono.", "There is nothing to do: the number is linked and messages leave."},

	{"Collegamento interrotto, ricomincia", "Linking was interrupted, begin again"},
	{"Collegamento interrotto", "Linking was interrupted"},
	{"Nessun telefono ha usato il codice", "No phone used the code"},
	{"Le chiavi del numero non ci sono più, collegalo di nuovo", "The number's keys are gone, link it again"},
	{"Le chiavi del numero non sono su questo server, collegalo di nuovo", "The number's keys are not on this server, link it again"},
	{"La connessione con WhatsApp non risponde", "The connection to WhatsApp does not answer"},
	{"La connessione con WhatsApp è caduta", "The connection to WhatsApp was lost"},
	{"Il telefono non è più attivo su WhatsApp con questo numero", "The phone no longer uses WhatsApp with this number"},
	{"Il telefono ha scollegato questo dispositivo", "The phone unlinked this device"},
	{"Troppi tentativi di collegamento: riprova tra qualche ora", "Too many attempts to link: try again in some hours"},
	{"Il collegamento non è riuscito, riprova", "Linking failed, try again"},
	{"Il telefono non permette altri dispositivi: aggiorna WhatsApp sul telefono e riprova", "The phone allows no more devices: update WhatsApp on it and try again"},
	{"Il telefono ha chiesto una passkey, che qui non si può dare", "The phone asked for a passkey, which cannot be given here"},
}

// English turns a sentence for people into English: the whole of it, or its beginning, where numbers, codes and Meta's own
// words follow. One that is not known comes back as it is.
func English(sentence string) string {
	for _, s := range english {
		if rest, ok := strings.CutPrefix(sentence, s.italian); ok {
			rest = strings.Replace(rest, "(codice Meta ", "(Meta code ", 1)
			return s.english + strings.TrimSuffix(rest, " può inviare")
		}
	}
	return sentence
}

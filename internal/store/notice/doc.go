// Package notice stores the notices for users: in the dashboard, and by e-mail.
//
// # Each notice is written once
//
// The transaction of a fact also writes its notice. So a crash loses no notice, and no notice is written twice.
//
// # Incidents
//
// The first fact that a session is disconnected writes an open notice. This notice becomes due after
// [puntuale.NoticeWait], and no user sees it before that. Further such facts only change the open notice. The fact that
// the session is online again deletes the notice if the notice is not due yet. If the notice is already due, this fact
// closes it. Then the fact also writes a second notice, which says that the session is online again.
//
// # E-mails
//
// A transaction marks notices that are due, and adds them to e-mails in the queue: one e-mail for each user who wants
// them. A notice is added to the user's waiting e-mail as long as no attempt was made to send that e-mail.
package notice

// Package notice keeps what people are told.
//
// # Once
//
// The transaction of a fact writes its notice. So a crash loses none, and none comes twice.
//
// # Incidents
//
// The first fact that says that a session is disconnected writes an open notice. It is due later ([puntuale.NoticeWait]), and nobody sees a
// notice before it is due. Further such facts only change it. The fact that says that the session is online deletes the notice if it is not
// due yet. Else it closes the notice, and writes another that says so.
//
// # E-mails
//
// A transaction marks notices that are due and puts them into e-mails of the queue, one for each user who wants them. A notice joins the
// user's waiting e-mail as long as nobody tried to send that.
package notice

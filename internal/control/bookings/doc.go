// Package bookings executes requests about many bookings at once: what a program's list says about a period, what a file
// says, and what an edited sequence makes of the bookings that there are. Each booking is changed as by a call of its
// own, in a transaction of its own. So an interruption leaves no booking half changed, and the whole can be repeated.
package bookings

-- +goose Up

-- Questions with buttons, and the answers of people.

alter table booking add column answer text not null default ''; -- JSON: the person's latest answer about the main date; '': none
alter table booking add column page_token text not null default ''; -- names the page of the confirmation; '': none
create unique index booking_page on booking (page_token) where page_token <> '';

alter table booking_step add column question text not null default ''; -- JSON: the buttons and the main date that they ask about; '': none
alter table booking_step add column answered_at integer not null default 0;

alter table reply add column answer integer not null default 0; -- 1 it answered a question about a booking, 2 such an answer that people must look at
alter table reply add column payload text not null default ''; -- of the button, as the network told it
alter table reply add column button text not null default ''; -- label of the pressed or named button
alter table reply add column in_reply_to integer not null default 0; -- the message that the reply answers
alter table reply add column matched text not null default ''; -- how in_reply_to was found

alter table client_setting add column confirm_words text not null default ''; -- JSON array; '': the usual words
alter table client_setting add column cancel_words text not null default '';
alter table client_setting add column button_line text not null default ''; -- above the numbered lines; '': the usual one

-- What subscribes to every event also gets the new one.
update webhook set types = types | 68719476736 where types & 68652367870 = 68652367870;
update event_stream set wanted = wanted | 68719476736 where wanted & 68652367870 = 68652367870;

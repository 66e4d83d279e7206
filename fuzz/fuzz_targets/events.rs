//! Target: server-sent events of a remote server. Every split gives the same events.

#![no_main]

use bine::__private::check_events;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|events: (u8, &[u8])| {
    check_events(events.0, events.1);
});

//! Decides that whatever another server answers is refused with words, or is the same in whatever pieces it comes.

#![no_main]

use bine::__private::check_answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: (u8, &[u8])| {
    check_answer(answer.0, answer.1);
});

//! Target: responses of a remote server. A response is rejected with a reason, or every split gives
//! the same response.

#![no_main]

use bine::__private::check_answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: (u8, &[u8])| {
    check_answer(answer.0, answer.1);
});

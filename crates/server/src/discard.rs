//! Drops values of the program, whose destructors may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_log as log;

use crate::metrics::count_panic;

/// Drops a value of the program. Counts and logs a panic of the destructor.
pub(crate) fn discard<V>(value: V) {
    if catch_unwind(AssertUnwindSafe(move || drop(value))).is_err() {
        count_panic();
        log::error(format_args!("the destructor of a value of the program panicked"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("a fault of the program"));
        }
    }

    #[test]
    fn survives_a_panic_in_the_drop_of_a_value() {
        let messages = bine_log::test_support::capture();
        discard(PanicsInDrop);
        discard(7);
        drop(messages);
    }
}

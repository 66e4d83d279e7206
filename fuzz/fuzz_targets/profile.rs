//! Target: files of profiles. What a file says survives when it is written again, and every sum can be
//! made.

#![no_main]

use bine_profile::{Profile, Report, Selection};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = Profile::read(bytes) else { return };
    let mut written = Vec::new();
    profile.write(&mut written).unwrap();
    assert_eq!(Profile::read(&written).as_ref(), Ok(&profile));
    for outside in [false, true] {
        let report = Report::of(&profile, &Selection { outside, route: None });
        assert!(report.functions.iter().all(|row| row.own.number <= row.total.number));
        assert!(report.functions.iter().all(|row| row.total.number <= report.count.number));
    }
});

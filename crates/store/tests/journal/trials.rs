//! The number of random trials of a test.

/// The number of random trials of a test: `usual`, or fewer if the environment variable
/// `BINE_TRIALS` has a lower number.
pub(crate) fn trials(usual: u64) -> u64 {
    let most = std::env::var("BINE_TRIALS").ok().and_then(|text| text.parse().ok());
    usual.min(most.unwrap_or(usual))
}

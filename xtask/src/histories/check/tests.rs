//! Histories that are written by hand, good and bad.

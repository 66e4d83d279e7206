//! The stream that several nodes share.
mod error;

//! Tests of bine-files through its public API.

mod changes;
mod client;
mod limits;
mod links;
mod listings;
mod precompressed;
mod races;
mod ranges;
mod redirects;
mod responses;
mod rules;
mod site;

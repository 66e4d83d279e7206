//! Decides, request by request, what a root hands out and what it never does.

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

//! Decides, request by request, what a root hands out and what it never does.

mod answers;
mod asking;
mod bounds;
mod changes;
mod links;
mod listings;
mod parts;
mod place;
mod precompressed;
mod races;
mod redirects;
mod rules;

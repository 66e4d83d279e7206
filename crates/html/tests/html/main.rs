//! Decides that what is written is read as what it was, by parsers that are not ours.

mod read;
mod round;

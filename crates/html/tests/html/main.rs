//! Round trips of pages through independent parsers of HTML and XML.

mod read;
mod round;

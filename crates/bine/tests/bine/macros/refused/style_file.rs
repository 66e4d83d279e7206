//! Rejected: mistakes in a style sheet file.

use bine::css_file;

css_file!("style_file.css");
css_file!("no_such_file.css");
css_file!(style);
css_file!(mod style; "style_file.css", top);

fn main() {}

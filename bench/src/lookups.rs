//! Measures look-ups in the vocabulary.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use bine_vocabulary::{element, elements, nearest, property};

use crate::arguments::Arguments;
use crate::figures::Spread;

/// Look-ups per sample, enough to make the clock's overhead negligible.
const IN_A_SAMPLE: u32 = 200_000;

/// Prints the time of each kind of look-up.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let samples = arguments.number("--samples", 21)?;
    println!("| look-up | ns: median (least-most) |\n|---|---|");
    let names: Vec<&str> = elements().iter().map(|element| element.name).collect();
    let input = element("input").expect("a name of the standard");
    let attributes: Vec<&str> = input.attribute_names().collect();
    let kind = input.attribute("type").expect("a name of the standard").kind;
    let misspelled = ["secton", "buton", "dvi", "xylophone"];
    print("element, known", samples, &names, |name| element(name).is_some());
    print("element, unknown", samples, &misspelled, |name| element(name).is_some());
    print("attribute of `input`", samples, &attributes, |name| input.attribute(name).is_some());
    print("word of `type`", samples, &["text", "week", "txet"], |word| kind.accepts(word));
    print("property", samples, &["color", "margin", "colour"], |name| property(name).is_some());
    print("nearest of all elements", samples, &misspelled, |name| {
        nearest(name, names.iter().copied()).is_some()
    });
    Ok(())
}

/// Times one kind of look-up over all `words` in turn.
fn print(title: &str, samples: u64, words: &[&str], look_up: impl Fn(&str) -> bool) {
    let sample = || {
        let begin = Instant::now();
        for word in words.iter().cycle().take(IN_A_SAMPLE as usize) {
            black_box(look_up(black_box(word)));
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(IN_A_SAMPLE)
    };
    // The first sample is a warm-up.
    sample();
    if let Some(spread) = Spread::of((0..samples).map(|_| sample())) {
        println!("| {title} | {spread} |");
    }
}

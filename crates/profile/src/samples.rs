//! Samples of the processor as a profile: the text that `perf script --fields ip,sym` prints.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::profile::{Count, Frame, Profile, Stack};
use crate::stage::Stage;

/// The most functions of a stack.
const MAX_DEPTH: usize = 1024;

impl Profile {
    /// The call stacks of the samples, each with its number. They belong to no request.
    ///
    /// A sample is a block of lines, each with an address and the name of a function, the innermost
    /// first. Empty lines separate samples.
    pub fn of_samples(text: &str) -> Self {
        let mut profile = Self::default();
        let mut indexes: HashMap<String, u32> = HashMap::new();
        let mut stacks: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        let mut stack = Vec::new();
        for line in text.lines().chain([""]) {
            let Some((_, name)) = line.trim().split_once(' ') else {
                if !stack.is_empty() {
                    *stacks.entry(std::mem::take(&mut stack)).or_default() += 1;
                }
                continue;
            };
            let name = demangled(name.trim());
            let next = profile.frames.len() as u32;
            let index = *indexes.entry(name).or_insert_with_key(|name| {
                let function = name.clone();
                profile.frames.push(Frame { function, ..Frame::default() });
                next
            });
            if stack.len() < MAX_DEPTH {
                stack.push(index);
            }
        }
        profile.stacks = stacks
            .into_iter()
            .map(|(frames, number)| Stack {
                count: Count { number, bytes: 0 },
                stage: Stage::Outside,
                route: String::new(),
                frames,
            })
            .collect();
        profile
    }
}

/// The path of a function, from the name of its symbol.
fn demangled(symbol: &str) -> String {
    let symbol = symbol.split_once("+0x").map_or(symbol, |(symbol, _)| symbol);
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = write!(text, "{:#}", backtrace::SymbolName::new(symbol.as_bytes()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Report, Selection};

    #[test]
    fn adds_up_samples_of_equal_stacks() {
        let text = "\n\
            \t    55d0 _ZN4shop5price17h0123456789abcdefE\n\
            \t    55d8 shop::cart\n\
            \n\
            \t    55d4 _ZN4shop5price17h0123456789abcdefE\n\
            \t    55d8 shop::cart\n\
            \n\
            \tffffffff9 [unknown]\n\
            \n\
            \t    55d8 shop::cart\n";
        let profile = Profile::of_samples(text);
        let report = Report::of(&profile, &Selection { outside: true, route: None });
        let rows = report.functions.iter();
        let rows: Vec<_> =
            rows.map(|row| (&*row.function, row.own.number, row.total.number)).collect();
        assert_eq!(rows, [("shop::price", 2, 2), ("shop::cart", 1, 3), ("[unknown]", 1, 1)]);
    }

    #[test]
    fn accepts_a_text_without_samples() {
        for text in ["", "\n\n", "one\ntwo\n"] {
            assert_eq!(Profile::of_samples(text), Profile::default(), "{text:?}");
        }
    }
}

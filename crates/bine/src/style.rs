//! Decides what a program's one style sheet holds, and under which address it is served.
//!
//! Each `css!` and `css_file!` leaves its part for the linker, wherever in the program and its libraries it stands;
//! here they are joined, once, when the program starts.

use std::borrow::Cow;

use crate::linked::Linked;

/// A part of the program's style sheet, as the macros leave it.
#[derive(Debug)]
pub struct Sheet {
    /// CSS without needless blanks.
    pub text: &'static str,
    /// The module and the line in which it stands.
    pub module: &'static str,
    /// See `module`.
    pub line: u32,
    /// It stands in a file of its own, and is meant for all pages.
    pub is_file: bool,
}

inventory::collect!(Sheet);

/// All parts that are linked, and those that the program adds. `None`: there are none.
pub(crate) fn of_program(added: &[Cow<'static, str>]) -> Option<Linked> {
    join(inventory::iter::<Sheet>.into_iter().collect(), added).map(Linked::style)
}

/// What is for all pages comes first, so that what is for one part of one may differ; within each, by module and line,
/// since the linker promises no order. What the program adds comes last: nobody has checked that it ends.
fn join(mut sheets: Vec<&Sheet>, added: &[Cow<'static, str>]) -> Option<String> {
    sheets.sort_unstable_by_key(|sheet| (!sheet.is_file, sheet.module, sheet.line, sheet.text));
    // A macro of the program's own may say the same more than once.
    sheets.dedup_by_key(|sheet| (sheet.module, sheet.line, sheet.text));
    let text = sheets.iter().map(|sheet| sheet.text).chain(added.iter().map(|text| &**text));
    let text: String = text.collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sheet(text: &'static str, module: &'static str, line: u32, is_file: bool) -> Sheet {
        Sheet { text, module, line, is_file }
    }

    #[test]
    fn parts_are_joined_in_an_order_that_the_linker_cannot_change() {
        let sheets = [
            sheet("d{}", "b", 10, false),
            sheet("c{}", "b", 9, false),
            sheet("b{}", "a", 50, false),
            sheet("a{}", "z", 1, true),
            sheet("c{}", "b", 9, false),
        ];
        let added = [Cow::Borrowed("e{}")];
        let joined = |sheets: Vec<&Sheet>| join(sheets, &added).expect("there are some");
        assert_eq!(joined(sheets.iter().collect()), "a{}b{}c{}d{}e{}");
        assert_eq!(joined(sheets.iter().rev().collect()), "a{}b{}c{}d{}e{}");
    }

    #[test]
    fn other_content_has_another_address_and_none_has_none() {
        let path = |text| {
            let joined = join(vec![&sheet(text, "a", 1, false)], &[]);
            joined.map(|text| Linked::style(text).route().path)
        };
        assert_ne!(path("a{}"), path("b{}"));
        assert_eq!(path(""), None);
        assert!(join(Vec::new(), &[]).is_none());
    }
}

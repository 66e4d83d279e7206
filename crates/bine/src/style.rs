//! The program's style sheet.
//!
//! Each `css!` and `css_file!` registers its part with the linker, from any module of the program
//! and its libraries. They are joined once, when the program starts.

use std::borrow::Cow;

use crate::bundled_asset::BundledAsset;

/// A part of the program's style sheet, as the macros register it.
#[derive(Debug)]
pub struct Sheet {
    /// CSS without unnecessary white space.
    pub text: &'static str,
    /// The module that contains the macro call.
    pub module: &'static str,
    /// The line of the macro call.
    pub line: u32,
    /// Whether the part is a file, meant for all pages.
    pub is_file: bool,
}

inventory::collect!(Sheet);

/// Joins all registered parts and those that the program adds. `None` if there is no CSS.
pub(crate) fn of_program(added: &[Cow<'static, str>]) -> Option<BundledAsset> {
    join(inventory::iter::<Sheet>.into_iter().collect(), added).map(BundledAsset::style)
}

/// Joins the parts that the program adds, without the registered ones. `None` if there is no CSS.
pub(crate) fn of_added(added: &[Cow<'static, str>]) -> Option<BundledAsset> {
    join(Vec::new(), added).map(BundledAsset::style)
}

/// Files precede components, so that the rules of a component may override them; within each group
/// the order is by module and line, since the linker guarantees no order. Sheets that the program
/// adds are last, because they are unchecked and may be incomplete.
fn join(mut sheets: Vec<&Sheet>, added: &[Cow<'static, str>]) -> Option<String> {
    sheets.sort_unstable_by_key(|sheet| (!sheet.is_file, sheet.module, sheet.line, sheet.text));
    // A macro of the program may repeat the same part.
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
    fn joins_parts_in_an_order_independent_of_the_linker() {
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
    fn address_depends_on_content() {
        let path = |text| {
            let joined = join(vec![&sheet(text, "a", 1, false)], &[]);
            joined.map(|text| BundledAsset::style(text).route().path)
        };
        assert_ne!(path("a{}"), path("b{}"));
        assert_eq!(path(""), None);
        assert!(join(Vec::new(), &[]).is_none());
    }
}

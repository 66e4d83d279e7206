//! Writes the SVG and MathML part of the table: names only, no rules about content.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::chosen;
use super::table::{Table, quoted};

const SVG: [&str; 5] = ["SVG2", "css-masking-1", "filter-effects-1", "svg-animations", "svg-paths"];

/// Writes the names; `elements` returns the elements of a specification.
pub(super) fn write(table: &mut Table, elements: &impl Fn(&str) -> Result<Value>) -> Result<()> {
    let of = |specifications: &[&str]| -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for specification in specifications {
            let facts = elements(specification)?;
            let listed = facts["elements"].as_array().into_iter().flatten();
            names.extend(listed.filter_map(|one| one["name"].as_str()).map(str::to_owned));
        }
        Ok(names)
    };
    let chosen = |texts: &[&str]| -> BTreeSet<String> {
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).map(str::to_owned).collect()
    };
    let mut list = |name, about, names: BTreeSet<String>| {
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        table.list(name, "&str", about, &names);
    };
    list("SVG_ELEMENTS", "The elements of SVG.", of(&SVG)?);
    list("SVG_ATTRIBUTES", "The attributes of SVG.", chosen(&[chosen::SVG, chosen::PRESENTATION]));
    list("MATHML_ELEMENTS", "The elements of MathML Core.", of(&["mathml-core"])?);
    list("MATHML_ATTRIBUTES", "The attributes of MathML Core.", chosen(&[chosen::MATHML]));
    Ok(())
}

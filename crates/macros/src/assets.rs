//! `bundled_files!`: the files below a folder, as constants of the program.

use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::literal;
use crate::token::Token;

/// Lists the files below a folder, by a path relative to the file of the token.
pub(crate) type ListFiles<'s> = &'s dyn Fn(&Token, &str) -> Result<Vec<String>, String>;

/// Expands `bundled_files!`: a list of names and contents.
pub(crate) fn bundled_files(tokens: &[Token], list: ListFiles<'_>) -> Expansion {
    let mut expansion = Expansion::default();
    let (folder, names) = match files(tokens, list) {
        Ok(found) => found,
        Err(fault) => {
            expansion.faults.push(fault);
            Default::default()
        }
    };
    // A block, because errors are inserted into it.
    expansion.code("{ &[");
    for name in names {
        expansion.code("(");
        expansion.string(&name);
        expansion.code(", ::core::include_bytes!(");
        expansion.string(&format!("{}/{name}", folder.trim_end_matches('/')));
        expansion.code(") as &[::core::primitive::u8]),");
    }
    expansion.code("] as &[(&::core::primitive::str, &[::core::primitive::u8])] }");
    expansion
}

/// The folder, and the names of its files.
fn files(tokens: &[Token], list: ListFiles<'_>) -> Result<(String, Vec<String>), Fault> {
    let message = "expected the name of a folder: `bundled_files!(\"static\")`";
    let [token] = tokens else {
        return Err(tokens
            .first()
            .map_or_else(|| Fault::at(Fault::WHOLE, message), |first| Fault::new(first, message)));
    };
    let folder = literal::string(token).ok_or_else(|| Fault::new(token, message))??;
    let names = list(token, &folder)
        .map_err(|error| Fault::new(token, format!("cannot read `{folder}`: {error}")))?;
    Ok((folder, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn expanded(source: &str, names: Result<&[&str], &str>) -> Expansion {
        let names = names.map(|names| names.iter().map(ToString::to_string).collect());
        let names: Result<Vec<String>, String> = names.map_err(str::to_owned);
        bundled_files(&Sample::new(source).tokens, &|_, _| names.clone())
    }

    #[test]
    fn includes_each_file() {
        let expansion = expanded("\"static/\"", Ok(&["app.css", "img/a \"b\".png"]));
        assert!(expansion.faults.is_empty());
        let expected = "{ &[(\"app.css\", ::core::include_bytes!(\"static/app.css\") as &[::core::primitive::u8]),\
            (\"img/a \\\"b\\\".png\", ::core::include_bytes!(\"static/img/a \\\"b\\\".png\") as &[::core::primitive::u8]),\
            ] as &[(&::core::primitive::str, &[::core::primitive::u8])] }";
        assert_eq!(expansion.code, expected);
    }

    #[test]
    fn reports_what_is_no_folder() {
        let message = |source, names| {
            let expansion = expanded(source, names);
            expansion.faults[0].message.clone()
        };
        let expected = "expected the name of a folder: `bundled_files!(\"static\")`";
        for source in ["", "static", "\"a\" \"b\"", "7"] {
            assert_eq!(message(source, Ok(&[])), expected, "{source}");
        }
        assert_eq!(message("\"lost\"", Err("not there")), "cannot read `lost`: not there");
    }
}

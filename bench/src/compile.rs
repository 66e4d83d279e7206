//! Measures the compile time of a page, less that of an empty crate, and compares it with the same
//! page in maud.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::figures::Spread;
use crate::machine;
use crate::tools::{Workspace, cargo, output};

/// A crate that is compiled repeatedly, without its dependencies.
struct Leaf {
    name: &'static str,
    needs: &'static str,
    page: fn(usize) -> String,
}

const LEAVES: [Leaf; 4] = [
    Leaf { name: "bine-empty", needs: "bine", page: |_| String::new() },
    Leaf { name: "bine-page", needs: "bine", page: bine },
    Leaf { name: "maud-empty", needs: "maud", page: |_| String::new() },
    Leaf { name: "maud-page", needs: "maud", page: maud },
];

/// Compiles every leaf once with its dependencies, then each leaf alone, in turns.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rounds = arguments.number("--rounds", 5)?;
    let elements = arguments.number("--elements", 1000)?;
    let facts = machine::facts();
    let workspace = Workspace::open()?;
    let folder = workspace.target.join("bench/compile");
    println!("{facts}\n\n| command | page | ms | over an empty crate, ms |\n|---|---|---|---|");
    for command in ["check", "build"] {
        let sources = LEAVES.map(|leaf| write_crate(&workspace, &folder, &leaf, elements as usize));
        let sources = sources.into_iter().collect::<Result<Vec<_>>>()?;
        for source in &sources {
            compile(command, source, &folder)?;
        }
        let mut times: [Vec<f64>; LEAVES.len()] = Default::default();
        for round in 1..=rounds {
            eprintln!("round {round}/{rounds} of cargo {command}");
            for (source, times) in sources.iter().zip(&mut times) {
                let text = fs::read(source)?;
                fs::write(source, text)?;
                let began = Instant::now();
                compile(command, source, &folder)?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        for (empty, page) in [(0, 1), (2, 3)] {
            let over = times[page].iter().zip(&times[empty]).map(|(page, empty)| page - empty);
            let over = Spread::of(over).context("no rounds")?;
            let all = Spread::of(times[page].iter().copied()).context("no rounds")?;
            println!("| cargo {command} | {} | {all} | {over} |", LEAVES[page].needs);
        }
    }
    println!("\nMedians of {rounds} rounds (least-most), {elements} elements, the dev profile.");
    Ok(())
}

/// Writes the crate and returns its source file.
fn write_crate(
    workspace: &Workspace,
    folder: &Path,
    leaf: &Leaf,
    elements: usize,
) -> Result<PathBuf> {
    let source = folder.join(leaf.name).join("src/lib.rs");
    fs::create_dir_all(source.parent().context("a source file is in a folder")?)?;
    let needs = match leaf.needs {
        "bine" => {
            format!("bine = {{ path = \"{}\" }}", workspace.root.join("crates/bine").display())
        }
        _ => String::from("maud = \"0.27\""),
    };
    let manifest = format!(
        "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{needs}\n",
        leaf.name
    );
    fs::write(folder.join(leaf.name).join("Cargo.toml"), manifest)?;
    fs::write(&source, (leaf.page)(elements))?;
    Ok(source)
}

fn compile(command: &str, source: &Path, folder: &Path) -> Result<()> {
    let leaf = source.parent().and_then(Path::parent).context("a source file is in a crate")?;
    let mut cargo = cargo();
    cargo.arg(command).arg("--target-dir").arg(folder.join("target"));
    output(cargo.env("CARGO_INCREMENTAL", "0").current_dir(leaf))?;
    Ok(())
}

/// A page with four elements per section, one attribute and one hole.
fn bine(elements: usize) -> String {
    // `written` uses the page: the compiler generates no code for an unused one.
    let mut page = String::from(
        "use bine::{Page, Writer, html};\n\n\
         pub fn written(name: &str, out: &mut Vec<u8>) { page(name).write(&mut Writer::new(out)); }\n\n\
         fn page(name: &str) -> impl Page {\n    html! { <main>\n",
    );
    for number in 0..elements / 4 {
        let _ = writeln!(
            page,
            r#"<section class="row"><h2>"Title {number}"</h2><p>"Text " {{name}}</p><a href="/{number}">"more"</a></section>"#
        );
    }
    page + "    </main> }\n}\n"
}

/// The same page in maud.
fn maud(elements: usize) -> String {
    let mut page = String::from(
        "use maud::{Markup, html};\n\npub fn page(name: &str) -> Markup {\n    html! { main {\n",
    );
    for number in 0..elements / 4 {
        let _ = writeln!(
            page,
            r#"section class="row" {{ h2 {{ "Title {number}" }} p {{ "Text " (name) }} a href="/{number}" {{ "more" }} }}"#
        );
    }
    page + "    } }\n}\n"
}

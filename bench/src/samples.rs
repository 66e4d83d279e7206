//! Keeps the samples of a benchmark that prints its tables, so that a reader can check the medians.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::origin::Version;
use crate::tools::Workspace;

/// The samples of one table: a line of comma-separated words for each sample.
pub(crate) struct Samples {
    /// The name of the file, without its extension.
    name: &'static str,
    /// The names of the columns that identify a case, separated by commas.
    case_columns: &'static str,
    /// With the names of the columns, once there is a sample.
    text: String,
}

impl Samples {
    pub(crate) const fn new(name: &'static str, case_columns: &'static str) -> Self {
        Self { name, case_columns, text: String::new() }
    }

    /// Adds a sample. `case` has a word for each column of a case; `figures` have the same names in
    /// each sample, with their units.
    pub(crate) fn add(&mut self, case: &[&str], round: u64, figures: &[(&str, f64)]) {
        if self.text.is_empty() {
            let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
            self.text = format!("{},round,{}\n", self.case_columns, names.join(","));
        }
        let case: Vec<String> = case.iter().map(|word| word.replace(',', ";")).collect();
        let _ = write!(self.text, "{},{round}", case.join(","));
        for (_, figure) in figures {
            let _ = write!(self.text, ",{figure}");
        }
        self.text.push('\n');
    }

    /// Writes the samples and the facts of their run to the folder that `--into` names, or to
    /// `bench/samples` in the target folder. Replaces those of an earlier run.
    pub(crate) fn write(
        &self,
        arguments: &Arguments,
        workspace: &Workspace,
        facts: &str,
    ) -> Result<()> {
        let folder = arguments
            .word("--into")
            .map_or_else(|| workspace.target.join("bench/samples"), PathBuf::from);
        let version = Version::of(&workspace.root);
        let write = |extension: &str, text: &str| -> Result<()> {
            let path = folder.join(self.name).with_extension(extension);
            // A folder of documents never has a part of a file.
            let partial = path.with_extension("partial");
            fs::write(&partial, text)
                .and_then(|()| fs::rename(&partial, &path))
                .with_context(|| path.display().to_string())
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        write("csv", &self.text)?;
        let own = arguments.to_string();
        let options = if own.is_empty() { "the default options" } else { &own };
        write("txt", &format!("{version}; {options}; {facts}\n"))?;
        eprintln!("the samples are in {}", folder.join(self.name).with_extension("csv").display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_a_line_for_each_sample_and_the_facts_of_the_run() {
        let workspace = Workspace::open().unwrap();
        let folder = workspace.work.join("samples");
        let words = ["--rounds", "2", "--into", folder.to_str().unwrap()].map(str::to_owned);
        let arguments = Arguments::parse(&words, &["--rounds", "--into"]).unwrap();
        let mut samples = Samples::new("loads", "load,server");
        samples.add(&["a, b", "bine"], 1, &[("cpu_us", 5.25), ("rate", 1e5)]);
        samples.add(&["a, b", "bine"], 2, &[("cpu_us", 5.5), ("rate", 99_000.0)]);
        samples.write(&arguments, &workspace, "Linux.").unwrap();
        let text = fs::read_to_string(folder.join("loads.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            ["load,server,round,cpu_us,rate", "a; b,bine,1,5.25,100000", "a; b,bine,2,5.5,99000"]
        );
        let facts = fs::read_to_string(folder.join("loads.txt")).unwrap();
        assert!(facts.ends_with("; --rounds 2; Linux.\n"), "{facts}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }
}

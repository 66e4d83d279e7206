//! Keeps the samples of a benchmark that prints its tables: each one when it is taken, so that a
//! stopped run can resume, and all of them in the end, so that a reader can check the medians.

use std::fmt::{self, Debug};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::machine::Machine;
use crate::origin::Version;
use crate::progress::Progress;
use crate::results::{line_of, split_figures};
use crate::tools::Workspace;

/// A sample as a row of figures.
pub(crate) trait Figures: Copy + Debug {
    /// The names of the figures, with their units.
    const NAMES: &'static [&'static str];
    type Row: Into<Vec<f64>> + TryFrom<Vec<f64>>;

    fn row(self) -> Self::Row;

    fn of(row: Self::Row) -> Self;
}

/// Implements [`Figures`] for a struct of numbers. Each field has the name of its column.
macro_rules! figures {
    ($sample:ident { $($field:ident: $name:literal),+ $(,)? }) => {
        impl crate::samples::Figures for $sample {
            const NAMES: &'static [&'static str] = &[$($name),+];
            type Row = [f64; [$($name),+].len()];

            fn row(self) -> Self::Row {
                [$(self.$field),+]
            }

            fn of([$($field),+]: Self::Row) -> Self {
                Self { $($field),+ }
            }
        }
    };
}
pub(crate) use figures;

/// What the samples of a run have in common.
pub(crate) struct Run<'run> {
    pub(crate) arguments: &'run Arguments,
    pub(crate) workspace: &'run Workspace,
    /// The machine and the versions, for readers.
    pub(crate) facts: &'run str,
}

/// The samples of one table, in the files `NAME.csv` and `NAME.txt`.
pub(crate) struct Samples<S> {
    /// The files without their extension.
    path: PathBuf,
    header: String,
    /// The version, the options and the facts of this run.
    facts: String,
    /// Each case and round, as its words in the file, with its sample.
    rows: Vec<(String, S)>,
    /// The rows so far, below the origin of the run.
    unfinished: File,
    progress: Progress,
}

impl<S: Figures> Samples<S> {
    /// Continues a stopped run of the same version, options and machine, or begins a new one of
    /// `count` samples. `case` has the names of the columns that identify a case, separated by commas.
    ///
    /// The files are in the folder that `--into` names, or in `bench/samples` in the target folder.
    pub(crate) fn open(name: &str, case: &str, run: &Run<'_>, count: usize) -> Result<Self> {
        let Run { arguments, workspace, facts } = run;
        let folder = arguments
            .word("--into")
            .map_or_else(|| workspace.target.join("bench/samples"), PathBuf::from);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let own = arguments.to_string();
        let options = if own.is_empty() { "the default options" } else { &own };
        let origin = format!("{}; {options}; ", Version::of(&workspace.root));
        let path = folder.join(name);
        let header = format!("{case},round,{}", S::NAMES.join(","));
        let start = format!("# {origin}{}\n{header}\n", Machine::this());

        let file = path.with_extension("unfinished");
        let text = fs::read_to_string(&file).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let words = case.split(',').count() + 1;
        let mut rows = Vec::new();
        let known = whole.strip_prefix(&start);
        if let Some(known) = known {
            for line in known.lines() {
                rows.push(parse(line, words).with_context(|| file.display().to_string())?);
            }
            eprintln!("{} samples of a stopped run are in {}", rows.len(), file.display());
        } else if !text.is_empty() {
            let kept = path.with_extension("unfinished.old");
            eprintln!("{}: a stopped run of a different origin is set apart", kept.display());
            fs::rename(&file, &kept).with_context(|| kept.display().to_string())?;
        }
        let mut unfinished = File::options()
            .append(true)
            .create(true)
            .open(&file)
            .with_context(|| file.display().to_string())?;
        if known.is_some() {
            // A stop at any moment leaves the rows that the file has.
            unfinished.set_len(whole.len() as u64)?;
        } else {
            unfinished.write_all(start.as_bytes())?;
        }
        let (facts, progress) = (origin + facts, Progress::new(count));
        Ok(Self { path, header, facts, rows, unfinished, progress })
    }

    /// The sample of a case in a round: that of a stopped run, or the one that `measure` takes.
    /// `case` has a word for each column of a case.
    pub(crate) fn take(
        &mut self,
        case: &[&str],
        round: u64,
        measure: impl FnOnce() -> Result<S>,
    ) -> Result<S> {
        let words: Vec<String> = case.iter().map(|word| word.replace(',', ";")).collect();
        let key = format!("{},{round}", words.join(","));
        if let Some((_, sample)) = self.rows.iter().find(|(known, _)| *known == key) {
            self.progress.skip();
            return Ok(*sample);
        }
        let name = case.join(", ");
        let sample = match measure() {
            Ok(sample) => sample,
            Err(error) => {
                self.progress.report(format_args!("{name}: {error:#}"));
                return Err(error.context(name));
            }
        };
        self.progress.report(format_args!("{name}: {}", Shown(sample)));
        let row = line_of(&key, &figures_of(sample));
        self.unfinished.write_all(format!("{row}\n").as_bytes())?;
        self.rows.push((key, sample));
        Ok(sample)
    }

    /// Writes the files. Replaces those of an earlier run.
    pub(crate) fn finish(self) -> Result<()> {
        let rows = self.rows.iter().map(|(case, sample)| line_of(case, &figures_of(*sample)));
        let lines: Vec<String> = std::iter::once(self.header).chain(rows).collect();
        for (extension, text) in [("csv", lines.join("\n")), ("txt", self.facts)] {
            let path = self.path.with_extension(extension);
            // A folder of documents never has a part of a file.
            let partial = path.with_extension("partial");
            fs::write(&partial, text + "\n")
                .and_then(|()| fs::rename(&partial, &path))
                .with_context(|| path.display().to_string())?;
        }
        fs::remove_file(self.path.with_extension("unfinished"))?;
        eprintln!("the samples are in {}", self.path.with_extension("csv").display());
        Ok(())
    }
}

/// Reads a row whose first `words` words are the case and the round.
fn parse<S: Figures>(line: &str, words: usize) -> Result<(String, S)> {
    let (case, figures) = split_figures(line, words, S::NAMES.len())?;
    let row = S::Row::try_from(figures).ok().with_context(|| format!("`{line}` is incomplete"))?;
    Ok((case, S::of(row)))
}

fn figures_of<S: Figures>(sample: S) -> Vec<f64> {
    sample.row().into()
}

/// A sample as words for a person who waits.
struct Shown<S>(S);

impl<S: Figures> fmt::Display for Shown<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, figure)) in S::NAMES.iter().zip(figures_of(self.0)).enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{name} {figure:.2}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Sample {
        cpu: f64,
        rate: f64,
    }

    figures!(Sample { cpu: "cpu_us", rate: "rate" });

    const FIRST: Sample = Sample { cpu: 5.25, rate: 1e5 };
    const SECOND: Sample = Sample { cpu: 5.5, rate: 99_000.0 };

    /// The folder of one test, and its options.
    struct Bench {
        workspace: Workspace,
        folder: PathBuf,
    }

    impl Bench {
        fn new() -> Self {
            let workspace = Workspace::open().unwrap();
            let folder = workspace.work.join("samples");
            Self { workspace, folder }
        }

        fn open(&self, rounds: &str) -> Samples<Sample> {
            let into = self.folder.to_str().unwrap();
            let words = ["--rounds", rounds, "--into", into].map(str::to_owned);
            let arguments = Arguments::parse(&words, &["--rounds", "--into"]).unwrap();
            let run = Run { arguments: &arguments, workspace: &self.workspace, facts: "Linux." };
            Samples::open("loads", "load,server", &run, 2).unwrap()
        }

        fn read(&self, extension: &str) -> String {
            fs::read_to_string(self.folder.join("loads").with_extension(extension)).unwrap()
        }
    }

    #[test]
    fn writes_a_line_for_each_sample_and_the_facts_of_the_run() {
        let bench = Bench::new();
        let mut samples = bench.open("2");
        samples.take(&["a, b", "bine"], 1, || Ok(FIRST)).unwrap();
        samples.take(&["a, b", "bine"], 2, || Ok(SECOND)).unwrap();
        samples.finish().unwrap();
        let lines =
            "load,server,round,cpu_us,rate\na; b,bine,1,5.25,100000\na; b,bine,2,5.5,99000\n";
        assert_eq!(bench.read("csv"), lines);
        assert!(bench.read("txt").ends_with("; --rounds 2; Linux.\n"), "{}", bench.read("txt"));
        assert_eq!(fs::read_dir(&bench.folder).unwrap().count(), 2);
    }

    #[test]
    fn continues_a_stopped_run_of_the_same_options_only() {
        let bench = Bench::new();
        bench.open("2").take(&["a", "bine"], 1, || Ok(FIRST)).unwrap();
        // Stopped in the middle of a line.
        let unfinished = bench.read("unfinished") + "a,bine,2,5.";
        fs::write(bench.folder.join("loads.unfinished"), unfinished).unwrap();
        let mut samples = bench.open("2");
        let known = samples.take(&["a", "bine"], 1, || bail!("it was measured before"));
        assert_eq!(known.unwrap(), FIRST);
        assert_eq!(samples.take(&["a", "bine"], 2, || Ok(SECOND)).unwrap(), SECOND);
        drop(samples);
        assert_eq!(bench.open("3").take(&["a", "bine"], 1, || Ok(SECOND)).unwrap(), SECOND);
    }

    #[test]
    fn keeps_no_failed_sample() {
        let bench = Bench::new();
        let mut samples = bench.open("2");
        let error = samples.take(&["a", "bine"], 1, || bail!("no response")).unwrap_err();
        assert_eq!(format!("{error:#}"), "a, bine: no response");
        assert_eq!(samples.take(&["a", "bine"], 1, || Ok(FIRST)).unwrap(), FIRST);
    }
}

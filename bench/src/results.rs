//! Stores results: one line per point, so that a stopped run can resume.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::machine::Machine;
use crate::origin::Version;

/// A point and its figures, as a line of words separated by commas.
pub(crate) trait Row: Sized {
    /// Identifies a measurement. Equal points are measured once.
    type Point: PartialEq;

    /// The names of the columns.
    fn header() -> String;

    fn parse(line: &str) -> Result<Self>;

    /// The line, without its end.
    fn line(&self) -> String;

    fn point(&self) -> &Self::Point;
}

/// The file of a run, and its rows.
pub(crate) struct Results<R> {
    file: File,
    pub(crate) rows: Vec<R>,
}

impl<R: Row> Results<R> {
    /// Reads the results of earlier runs in `folder`. An incomplete last line is dropped, and its
    /// point measured again.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join("points.csv");
        let header = format!("{}\n", R::header());
        let text = if path.exists() { fs::read_to_string(&path)? } else { String::new() };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        ensure!(
            whole.is_empty() || whole.starts_with(&header),
            "{} has different columns: choose a different folder (--into), or remove it",
            path.display()
        );
        let rows = whole.lines().skip(1).map(R::parse).collect::<Result<_>>()?;
        let kept = if whole.is_empty() { &header } else { whole };
        if kept != text {
            fs::write(&path, kept)?;
        }
        Ok(Self { file: OpenOptions::new().append(true).open(&path)?, rows })
    }

    pub(crate) fn has(&self, point: &R::Point) -> bool {
        self.find(point).is_some()
    }

    /// The row of this point, if it has been measured.
    pub(crate) fn find(&self, point: &R::Point) -> Option<&R> {
        self.rows.iter().find(|row| row.point() == point)
    }

    pub(crate) fn add(&mut self, row: R) -> Result<()> {
        self.file.write_all(format!("{}\n", row.line()).as_bytes())?;
        self.rows.push(row);
        Ok(())
    }
}

/// Returns the description of the run whose results are in `folder`: its version, and the facts of
/// its machine. Results of a different version or machine are kept as `points.1.csv` and so on, and
/// the run begins with none.
pub(crate) fn description(
    folder: &Path,
    version: &Version,
    facts: impl FnOnce() -> String,
) -> Result<String> {
    fs::create_dir_all(folder)?;
    let (path, points) = (folder.join("machine.txt"), folder.join("points.csv"));
    let (version, machine) = (format!("{version}; "), Machine::this().to_string());
    let known = fs::read_to_string(&path).unwrap_or_default();
    if known.starts_with(&version) && known.contains(&machine) {
        return Ok(known);
    }
    if points.exists() {
        let mut names = (1..).map(|number| folder.join(format!("points.{number}.csv")));
        let kept = names.find(|name| !name.exists()).context("no name is free")?;
        fs::rename(&points, &kept)?;
        eprintln!("results of a different version or machine are in {} now", kept.display());
    }
    let text = version + &facts();
    fs::write(&path, &text)?;
    Ok(text)
}

/// The values of the words `NAME=VALUE` of `text` with these names.
pub(crate) fn figures_of<const N: usize>(names: &[&str; N], text: &str) -> Result<[f64; N]> {
    let mut figures = [0.0; N];
    for (figure, name) in figures.iter_mut().zip(names) {
        let mut pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        let (_, value) = pairs
            .find(|(known, _)| known == name)
            .with_context(|| format!("no {name} in `{text}`"))?;
        *figure = value.parse().with_context(|| format!("{name}={value}"))?;
    }
    Ok(figures)
}

/// Splits a line into the text of the point, which has `point_words` words, and the `N` figures.
pub(crate) fn split_line<const N: usize>(
    line: &str,
    point_words: usize,
) -> Result<(String, [f64; N])> {
    let (point, all) = split_figures(line, point_words, N)?;
    let mut figures = [0.0; N];
    figures.copy_from_slice(&all);
    Ok((point, figures))
}

/// The same for a number of figures that is not known to the compiler.
pub(crate) fn split_figures(
    line: &str,
    point_words: usize,
    count: usize,
) -> Result<(String, Vec<f64>)> {
    let words: Vec<&str> = line.split(',').collect();
    ensure!(words.len() == point_words + count, "`{line}` is incomplete");
    let (point, rest) = words.split_at(point_words);
    let figure = |word: &&str| word.parse().with_context(|| format!("`{word}` in `{line}`"));
    Ok((point.join(","), rest.iter().map(figure).collect::<Result<_>>()?))
}

/// The point and its figures, in the format that [`split_line`] reads.
pub(crate) fn line_of(point: &impl ToString, figures: &[f64]) -> String {
    let figures: Vec<String> = figures.iter().map(ToString::to_string).collect();
    format!("{},{}", point.to_string(), figures.join(","))
}

#[cfg(test)]
mod tests {
    //! The description of a run.

    use super::*;
    use crate::origin::tests::version;
    use crate::tools::Workspace;

    #[test]
    fn continues_a_run_of_the_same_version_only() {
        let workspace = Workspace::open().unwrap();
        let folder = workspace.work.join("described");
        let facts = || Machine::this().to_string();
        let describe = |commit| description(&folder, &version(commit), facts).unwrap();
        let first = describe("a");
        assert!(first.starts_with("0.1.0 (a); Linux "), "{first}");
        fs::write(folder.join("points.csv"), "1").unwrap();
        assert_eq!(description(&folder, &version("a"), || unreachable!()).unwrap(), first);
        assert!(folder.join("points.csv").exists());
        for (commit, kept) in [("b", "points.1.csv"), ("c", "points.2.csv")] {
            assert!(describe(commit).starts_with(&format!("0.1.0 ({commit}); ")));
            assert!(!folder.join("points.csv").exists() && folder.join(kept).exists());
            fs::write(folder.join("points.csv"), "2").unwrap();
        }
    }

    #[test]
    fn begins_anew_on_a_different_machine() {
        let workspace = Workspace::open().unwrap();
        let folder = workspace.work.join("elsewhere");
        let version = version("a");
        description(&folder, &version, || "Linux 1, A processor, 9 cores".to_owned()).unwrap();
        fs::write(folder.join("points.csv"), "1").unwrap();
        let here = description(&folder, &version, || "here".to_owned()).unwrap();
        assert_eq!(here, "0.1.0 (a); here");
        assert!(folder.join("points.1.csv").exists());
    }
}

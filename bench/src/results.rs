//! Stores results: one line per point, so that a stopped run can resume.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

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

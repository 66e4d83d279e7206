//! A report as a table for readers.

use std::fmt::Write as _;

use bine_profile::{Count, FunctionRow, NameRow, Profile, Report, Selection};

/// Writes the table, with the first `rows` functions.
pub(super) fn write(
    profile: &Profile,
    report: &Report,
    selection: &Selection,
    rows: usize,
) -> String {
    let Report { requests, count, outside, left_out, .. } = report;
    let mut text = format!(
        "{}: {requests} requests in {:.1} s\n\n",
        profile.program,
        profile.milliseconds as f64 / 1000.0
    );
    // Without requests, and outside of them, a quotient would mean nothing.
    let divisor = (!selection.outside && *requests > 0).then_some(*requests);
    let mut sums = vec![heading(&["allocations", "per request", "bytes", "per request", ""])];
    let what = if selection.outside { "outside of requests" } else { "in requests" };
    sums.push(counted(*count, divisor, what.to_owned()));
    if !selection.outside {
        sums.push(counted(*outside, None, "outside of requests".to_owned()));
    }
    if *left_out != Count::default() {
        sums.push(counted(
            *left_out,
            None,
            "without a place: the table of call stacks was full".to_owned(),
        ));
    }
    write_columns(&mut text, &sums);
    if profile.cut > 0 {
        let cut = profile.cut;
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "{cut} allocations are in call stacks whose outermost functions are left out"
        );
    }
    let mut stages =
        vec![heading(&["allocations", "per request", "bytes", "per request", "stage"])];
    stages.extend(report.stages.iter().map(|row| counted(row.count, divisor, row.name.clone())));
    section(&mut text, &stages);
    let columns =
        ["requests", "allocations", "per request", "bytes", "per request", "route or service"];
    let mut routes = vec![heading(&columns)];
    routes.extend(report.routes.iter().map(|row| route(row, selection.outside)));
    section(&mut text, &routes);
    let columns = ["own", "bytes", "total", "bytes", "function"];
    let mut functions = vec![heading(&columns)];
    functions.extend(report.functions.iter().take(rows).map(|row| function(row, divisor)));
    section(&mut text, &functions);
    if divisor.is_some() && functions.len() > 1 {
        text.push_str("(functions: per request)\n");
    }
    if report.functions.len() > rows {
        let rest = report.functions.len() - rows;
        let _ = writeln!(text, "{rest} more functions; `--rows` shows more");
    }
    text
}

pub(super) fn heading(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

fn counted(count: Count, divisor: Option<u64>, name: String) -> Vec<String> {
    let Count { number, bytes } = count;
    let (numbers, sizes) = (quotient(number, divisor, 3), quotient(bytes, divisor, 1));
    vec![number.to_string(), numbers, bytes.to_string(), sizes, name]
}

fn route(row: &NameRow, outside: bool) -> Vec<String> {
    let NameRow { name, requests, count } = row;
    let name = if name.is_empty() { "(not known yet)" } else { name };
    let divisor = requests.filter(|requests| *requests > 0 && !outside);
    let requests = requests.map_or(String::new(), |requests| requests.to_string());
    let mut cells = vec![requests];
    cells.extend(counted(*count, divisor, name.to_owned()));
    cells
}

fn function(row: &FunctionRow, divisor: Option<u64>) -> Vec<String> {
    let FunctionRow { function, file, line, own, total } = row;
    let place = if file.is_empty() { String::new() } else { format!(" ({file}:{line})") };
    let one = |sum: u64, digits| match divisor {
        Some(_) => quotient(sum, divisor, digits),
        None => sum.to_string(),
    };
    vec![
        one(own.number, 3),
        one(own.bytes, 1),
        one(total.number, 3),
        one(total.bytes, 1),
        format!("{function}{place}"),
    ]
}

fn quotient(sum: u64, divisor: Option<u64>, digits: usize) -> String {
    divisor.map_or(String::new(), |divisor| format!("{:.digits$}", sum as f64 / divisor as f64))
}

/// Writes rows after an empty line, unless there is only the heading.
fn section(text: &mut String, rows: &[Vec<String>]) {
    if rows.len() > 1 {
        text.push('\n');
        write_columns(text, rows);
    }
}

/// Writes rows with aligned columns: numbers to the right, the name at the end.
pub(super) fn write_columns(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing into a String cannot fail.
            let _ = if at + 1 == columns {
                write!(line, "{cell}")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

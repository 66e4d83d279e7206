//! A report as JSON.

use bine_profile::{Count, FunctionRow, NameRow, Profile, Report};
use serde_json::{Value, json};

pub(super) fn write(profile: &Profile, report: &Report) -> String {
    let Report { requests, count, outside, left_out, stages, routes, functions } = report;
    let value = json!({
        "program": profile.program,
        "requests": requests,
        "milliseconds": profile.milliseconds,
        "allocations": sums(*count),
        "outside": sums(*outside),
        "leftOut": sums(*left_out),
        "cut": profile.cut,
        "stages": stages.iter().map(named).collect::<Vec<_>>(),
        "routes": routes.iter().map(named).collect::<Vec<_>>(),
        "functions": functions.iter().map(function).collect::<Vec<_>>(),
    });
    format!("{value}\n")
}

fn sums(count: Count) -> Value {
    json!({ "number": count.number, "bytes": count.bytes })
}

fn named(row: &NameRow) -> Value {
    let NameRow { name, requests, count } = row;
    json!({ "name": name, "requests": requests, "allocations": sums(*count) })
}

fn function(row: &FunctionRow) -> Value {
    let FunctionRow { function, file, line, own, total } = row;
    json!({
        "function": function,
        "file": file,
        "line": line,
        "own": sums(*own),
        "total": sums(*total),
    })
}

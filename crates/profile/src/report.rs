//! Sums of a profile by stage, route and function.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::profile::{Count, Frame, Profile, Stack};
use crate::stage::Stage;

/// The part of a profile that a report is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only allocations outside of requests; otherwise only those in requests.
    pub outside: bool,
    /// Only allocations for this route or service.
    pub route: Option<String>,
}

/// The allocations of a stage or a route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameRow {
    /// The name; empty for allocations before the route is known.
    pub name: String,
    /// The number of requests; `None` where only the number of all requests is meaningful.
    pub requests: Option<u64>,
    /// The allocations.
    pub count: Count,
}

/// The allocations of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionRow {
    /// The path of the function.
    pub function: String,
    /// The file and the line of most of its allocations; empty and 0 if they are not known.
    pub file: String,
    /// See [`file`](Self::file).
    pub line: u32,
    /// The allocations that the function makes itself, also by the standard library.
    pub own: Count,
    /// The same, with those of all functions that it calls.
    pub total: Count,
}

/// The sums of a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The number of requests to which the counts belong.
    pub requests: u64,
    /// The allocations of the selection.
    pub count: Count,
    /// All allocations outside of requests.
    pub outside: Count,
    /// The allocations for whose call stacks there was no room. They are in no other sum.
    pub left_out: Count,
    /// The stages, in the order of a request.
    pub stages: Vec<NameRow>,
    /// The routes, the one with most allocations first.
    pub routes: Vec<NameRow>,
    /// The functions, the one with most allocations of its own first.
    pub functions: Vec<FunctionRow>,
}

/// The sums of a function, with the number of allocations at each of its places.
#[derive(Default)]
struct FunctionSums<'p> {
    own: Count,
    total: Count,
    places: BTreeMap<(&'p str, u32), u64>,
}

impl Selection {
    /// Whether a call stack belongs to the part.
    pub fn has(&self, stack: &Stack) -> bool {
        (stack.stage == Stage::Outside) == self.outside
            && self.route.as_ref().is_none_or(|route| *route == stack.route)
    }
}

impl Report {
    /// Sums up the selected part of a profile.
    pub fn of(profile: &Profile, selection: &Selection) -> Self {
        let mut report = Self { left_out: profile.left_out, ..Self::default() };
        let mut stages: BTreeMap<Stage, Count> = BTreeMap::new();
        let mut routes: BTreeMap<&str, Count> = BTreeMap::new();
        let mut functions: BTreeMap<&str, FunctionSums<'_>> = BTreeMap::new();
        for stack in &profile.stacks {
            if stack.stage == Stage::Outside {
                report.outside.add(stack.count);
            }
            if selection.has(stack) {
                report.count.add(stack.count);
                stages.entry(stack.stage).or_default().add(stack.count);
                routes.entry(&stack.route).or_default().add(stack.count);
                add_functions(&mut functions, stack, &profile.frames);
            }
        }
        let mut requests: BTreeMap<&str, u64> = BTreeMap::new();
        for route in &profile.routes {
            let sum = requests.entry(&route.route).or_default();
            *sum = sum.saturating_add(route.requests);
        }
        report.requests = match &selection.route {
            Some(route) => requests.get(&**route).copied().unwrap_or(0),
            None => profile.requests,
        };
        let row = |name: &str, requests, count| NameRow { name: name.to_owned(), requests, count };
        report.stages =
            stages.into_iter().map(|(stage, count)| row(stage.name(), None, count)).collect();
        if !selection.outside {
            // A route without an allocation has a row too.
            for route in requests.keys() {
                if selection.route.as_ref().is_none_or(|selected| selected == route) {
                    routes.entry(route).or_default();
                }
            }
        }
        report.routes = routes
            .into_iter()
            .map(|(route, count)| row(route, requests.get(route).copied(), count))
            .collect();
        report.routes.sort_by_key(|row| Reverse(row.count));
        report.functions = functions.into_iter().map(|(name, sums)| sums.into_row(name)).collect();
        report.functions.sort_by(|one, other| {
            (other.own, other.total, &one.function).cmp(&(one.own, one.total, &other.function))
        });
        report
    }
}

impl FunctionSums<'_> {
    fn into_row(self, function: &str) -> FunctionRow {
        let place = self.places.into_iter().max_by_key(|(_, number)| *number);
        let ((file, line), _) = place.unwrap_or_default();
        let (function, file) = (function.to_owned(), file.to_owned());
        FunctionRow { function, file, line, own: self.own, total: self.total }
    }
}

/// Adds a call stack to its functions. A function that calls itself counts once.
fn add_functions<'p>(
    functions: &mut BTreeMap<&'p str, FunctionSums<'p>>,
    stack: &Stack,
    frames: &'p [Frame],
) {
    let stack_frames = || stack.frames.iter().filter_map(|frame| frames.get(*frame as usize));
    let mut seen = BTreeSet::new();
    let mut shown = stack_frames().filter(|frame| !is_of_standard_library(frame)).peekable();
    if shown.peek().is_none() {
        // A thread of a library without symbols, for example.
        if let Some(first) = stack_frames().next() {
            let sums = functions.entry(&first.function).or_default();
            sums.own.add(stack.count);
            sums.total.add(stack.count);
        }
        return;
    }
    for frame in shown {
        if !seen.insert(&*frame.function) {
            continue;
        }
        let sums = functions.entry(&frame.function).or_default();
        if seen.len() == 1 {
            sums.own.add(stack.count);
        }
        sums.total.add(stack.count);
        let number = sums.places.entry((&frame.file, frame.line)).or_default();
        *number = number.saturating_add(stack.count.number);
    }
}

/// Whether a function belongs to the standard library, which allocates in the name of its caller.
fn is_of_standard_library(frame: &Frame) -> bool {
    const FOLDERS: [&str; 2] = ["/rustc/", "/rustlib/src/rust/library/"];
    if !frame.file.is_empty() {
        return FOLDERS.iter().any(|folder| frame.file.contains(folder));
    }
    let function = &*frame.function;
    // The function of a trait belongs to the type: `<shop::Cart as core::fmt::Display>::fmt` does not.
    match function.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        Some((own, of)) => is_standard_path(of) && (is_standard_path(own) || !own.contains("::")),
        None => is_standard_path(function) || function.starts_with("__rust"),
    }
}

fn is_standard_path(path: &str) -> bool {
    const CRATES: [&str; 4] = ["alloc::", "core::", "std::", "hashbrown::"];
    let path = path.trim_start_matches(['<', '&', '[', ' ']);
    CRATES.iter().any(|name| path.starts_with(name))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::profile::RouteRequests;

    const STD: &str = "/rustc/0/library/alloc/src/vec.rs";

    fn profile() -> Profile {
        let frame = |function: &str, file: &str, line| Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
        };
        let stack = |number, bytes, stage, route: &str, frames: &[u32]| Stack {
            count: Count { number, bytes },
            stage,
            route: route.to_owned(),
            frames: frames.to_vec(),
        };
        Profile {
            requests: 10,
            left_out: Count { number: 1, bytes: 2 },
            routes: vec![
                RouteRequests { requests: 6, route: "cart".to_owned() },
                RouteRequests { requests: 4, route: "quiet".to_owned() },
            ],
            frames: vec![
                frame("alloc::vec::Vec<T>::push", STD, 9),
                frame("shop::price", "src/price.rs", 3),
                frame("shop::cart", "src/cart.rs", 7),
                frame("std::rt::lang_start", "", 0),
                frame("shop::price", "src/price.rs", 5),
            ],
            stacks: vec![
                stack(6, 60, Stage::Handler, "cart", &[0, 1, 2, 3]),
                stack(12, 24, Stage::Handler, "cart", &[0, 4, 1, 2, 3]),
                stack(1, 100, Stage::Handler, "cart", &[2, 3]),
                stack(2, 8, Stage::Receive, "", &[3]),
                stack(5, 50, Stage::Outside, "", &[0, 3]),
            ],
            ..Profile::default()
        }
    }

    fn shown(report: &Report) -> String {
        let count = |count: Count| format!("{}/{}", count.number, count.bytes);
        let mut text = format!(
            "requests {} count {} outside {} left out {}\n",
            report.requests,
            count(report.count),
            count(report.outside),
            count(report.left_out)
        );
        for row in report.stages.iter().chain(&report.routes) {
            writeln!(text, "{:?} {:?} {}", row.name, row.requests, count(row.count)).unwrap();
        }
        for row in &report.functions {
            let FunctionRow { function, file, line, own, total } = row;
            writeln!(text, "{function} {file}:{line} {} {}", count(*own), count(*total)).unwrap();
        }
        text
    }

    #[test]
    fn sums_up_by_stage_route_and_function() {
        let report = Report::of(&profile(), &Selection::default());
        assert_eq!(
            shown(&report),
            "requests 10 count 21/192 outside 5/50 left out 1/2\n\
             \"receive\" None 2/8\n\
             \"handler\" None 19/184\n\
             \"cart\" Some(6) 19/184\n\
             \"\" None 2/8\n\
             \"quiet\" Some(4) 0/0\n\
             shop::price src/price.rs:5 18/84 18/84\n\
             std::rt::lang_start :0 2/8 2/8\n\
             shop::cart src/cart.rs:7 1/100 19/184\n"
        );
    }

    #[test]
    fn knows_functions_of_the_standard_library() {
        for (function, file, expected) in [
            ("alloc::vec::Vec<T>::push", "", true),
            ("<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", "", true),
            ("<alloc::string::String as core::clone::Clone>::clone", "", true),
            ("<shop::Cart as core::fmt::Display>::fmt", "", false),
            ("shop::alloc::push", "", false),
            ("__rustc::__rust_alloc", "", true),
            ("push", STD, true),
            ("push", "/opt/rust/lib/rustlib/src/rust/library/alloc/src/vec/mod.rs", true),
            ("alloc::push", "/shop/src/alloc.rs", false),
        ] {
            let (function, file) = (function.to_owned(), file.to_owned());
            let frame = Frame { function, file, line: 1 };
            assert_eq!(is_of_standard_library(&frame), expected, "{frame:?}");
        }
    }

    #[test]
    fn selects_a_route_or_what_is_outside_of_requests() {
        let route = Selection { route: Some("quiet".to_owned()), ..Selection::default() };
        assert_eq!(
            shown(&Report::of(&profile(), &route)),
            "requests 4 count 0/0 outside 5/50 left out 1/2\n\"quiet\" Some(4) 0/0\n"
        );
        let outside = Selection { outside: true, ..Selection::default() };
        assert_eq!(
            shown(&Report::of(&profile(), &outside)),
            "requests 10 count 5/50 outside 5/50 left out 1/2\n\
             \"outside\" None 5/50\n\
             \"\" None 5/50\n\
             alloc::vec::Vec<T>::push :0 5/50 5/50\n"
        );
    }
}

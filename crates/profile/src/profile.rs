//! A profile of allocations as a value, and its file. docs/formats/allocations.md describes the file.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use crate::stage::Stage;

/// The first line of a file, without the version.
const MAGIC: &str = "bine allocations ";
/// The version that this module reads and writes.
const VERSION: &str = "1";
/// The longest file that is read, in bytes.
pub const MAX_FILE: u64 = 256 << 20;

/// A number of allocations, and their bytes as the program requested them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Count {
    /// The number of allocations; a change of a size counts as one.
    pub number: u64,
    /// The sum of the requested sizes, after a change of a size.
    pub bytes: u64,
}

impl Count {
    /// Adds another count. Sums end at the highest number.
    pub fn add(&mut self, other: Self) {
        self.number = self.number.saturating_add(other.number);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A function in a call stack, with the place that it has reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Frame {
    /// The path of the function; without symbols, its address.
    pub function: String,
    /// The source file; empty if it is not known.
    pub file: String,
    /// The line in the file; 0 if it is not known.
    pub line: u32,
}

/// All allocations with the same call stack, stage and route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack {
    /// The number of the allocations, and their bytes.
    pub count: Count,
    /// The stage of the request.
    pub stage: Stage,
    /// The name of the route or service; empty if it is not known.
    pub route: String,
    /// The functions, as indexes of [`Profile::frames`], the innermost first.
    pub frames: Vec<u32>,
}

/// The number of requests of a route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRequests {
    /// The number of requests.
    pub requests: u64,
    /// The name of the route or service.
    pub route: String,
}

/// The allocations of a program while it was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// The program, as it was started.
    pub program: String,
    /// The number of requests.
    pub requests: u64,
    /// The time of the recording, in milliseconds.
    pub milliseconds: u64,
    /// The allocations for whose call stacks there was no room.
    pub left_out: Count,
    /// The number of allocations in call stacks whose outermost functions are missing.
    pub cut: u64,
    /// The requests of each route.
    pub routes: Vec<RouteRequests>,
    /// The functions of all call stacks.
    pub frames: Vec<Frame>,
    /// The allocations.
    pub stacks: Vec<Stack>,
}

/// Why a file cannot be read as a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// The line, counted from 1.
    line: usize,
    reason: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ReadError {}

impl Profile {
    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{MAGIC}{VERSION}")?;
        writeln!(out, "program\t{}", OneLine(&self.program))?;
        writeln!(out, "requests\t{}", self.requests)?;
        writeln!(out, "milliseconds\t{}", self.milliseconds)?;
        writeln!(out, "left-out\t{}\t{}", self.left_out.number, self.left_out.bytes)?;
        writeln!(out, "cut\t{}", self.cut)?;
        for RouteRequests { requests, route } in &self.routes {
            writeln!(out, "route\t{requests}\t{}", OneLine(route))?;
        }
        for Frame { function, file, line } in &self.frames {
            writeln!(out, "frame\t{line}\t{}\t{}", OneLine(file), OneLine(function))?;
        }
        for Stack { count: Count { number, bytes }, stage, route, frames } in &self.stacks {
            let (stage, route) = (stage.name(), OneLine(route));
            write!(out, "stack\t{number}\t{bytes}\t{stage}\t{route}\t")?;
            for (at, frame) in frames.iter().enumerate() {
                write!(out, "{}{frame}", if at == 0 { "" } else { " " })?;
            }
            writeln!(out)?;
        }
        let records = 6 + self.routes.len() + self.frames.len() + self.stacks.len();
        writeln!(out, "end\t{records}")
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns the first line that is not one of such a file, or that the file is incomplete.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let fail = |line, reason: &str| Err(ReadError { line, reason: reason.to_owned() });
        let magic = bytes.strip_prefix(MAGIC.as_bytes());
        let Some(rest) = magic.filter(|rest| rest.contains(&b'\n')) else {
            return fail(
                1,
                "this is no profile of allocations; start a program with `--profile-allocations FILE` to write one",
            );
        };
        let version = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if version != VERSION.as_bytes() {
            let version = String::from_utf8_lossy(&version[..version.len().min(20)]).into_owned();
            let reason = format!(
                "the file has version {version:?} and this program reads version {VERSION:?}; use the `bine` of the program that wrote it"
            );
            return Err(ReadError { line: 1, reason });
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = &bytes[..error.valid_up_to()];
                let line = valid.split(|byte| *byte == b'\n').count();
                return fail(line, "the line is not UTF-8 text");
            }
        };
        let mut profile = Self::default();
        let mut last = 1;
        for (line, text) in (1..).zip(text.split_inclusive('\n')).skip(1) {
            last = line;
            let Some(text) = text.strip_suffix('\n') else { break };
            let (name, rest) = text.split_once('\t').unwrap_or((text, ""));
            if name == "end" {
                if number(rest) != Some(line as u64 - 1) {
                    return fail(line, "the file has lost lines, or has lines of another file");
                }
                return Ok(profile);
            }
            if let Err(reason) = profile.read_record(name, rest) {
                return fail(line, reason);
            }
        }
        fail(
            last,
            "the file ends here and is incomplete; stop the program by SIGTERM and wait for its end",
        )
    }

    /// Reads a line after the first one.
    fn read_record(&mut self, name: &str, rest: &str) -> Result<(), &'static str> {
        const NUMBER: &str = "a number is missing or too large";
        match name {
            "program" => self.program = name_of(rest)?,
            "requests" => self.requests = number(rest).ok_or(NUMBER)?,
            "milliseconds" => self.milliseconds = number(rest).ok_or(NUMBER)?,
            "left-out" => {
                let (count, bytes) = rest.split_once('\t').ok_or(NUMBER)?;
                self.left_out = count_of(count, bytes).ok_or(NUMBER)?;
            }
            "cut" => self.cut = number(rest).ok_or(NUMBER)?,
            "route" => {
                let (requests, route) = rest.split_once('\t').ok_or("the route has no name")?;
                let (requests, route) = (number(requests).ok_or(NUMBER)?, name_of(route)?);
                self.routes.push(RouteRequests { requests, route });
            }
            "frame" => {
                let mut parts = rest.splitn(3, '\t');
                let line = parts.next().and_then(number).ok_or(NUMBER)?;
                let line = u32::try_from(line).map_err(|_| NUMBER)?;
                let (Some(file), Some(function)) = (parts.next(), parts.next()) else {
                    return Err("the function has no file or no name");
                };
                let (file, function) = (file.to_owned(), name_of(function)?);
                self.frames.push(Frame { function, file, line });
            }
            "stack" => {
                let stack = self.read_stack(rest)?;
                self.stacks.push(stack);
            }
            _ => return Err("the line begins with an unknown word"),
        }
        Ok(())
    }

    fn read_stack(&self, text: &str) -> Result<Stack, &'static str> {
        let mut parts = text.split('\t');
        let mut next = || parts.next().ok_or("the call stack has too few parts");
        let (count, bytes) = (next()?, next()?);
        let count = count_of(count, bytes).ok_or("a number is missing or too large")?;
        let stage = Stage::named(next()?).ok_or("the stage has an unknown name")?;
        let (route, frames) = (next()?.to_owned(), next()?);
        if next().is_ok() {
            return Err("the call stack has too many parts");
        }
        let is_known = |frame: &u64| *frame < self.frames.len() as u64;
        let frames = frames.split(' ').filter(|frame| !frame.is_empty());
        let frames = frames.map(|frame| number(frame).filter(is_known).map(|frame| frame as u32));
        let frames = frames.collect::<Option<Vec<u32>>>();
        let frames = frames.ok_or("the call stack names a function that no line above has")?;
        Ok(Stack { count, stage, route, frames })
    }
}

/// The name at the end of a line.
fn name_of(text: &str) -> Result<String, &'static str> {
    if text.contains('\t') { Err("the line has too many parts") } else { Ok(text.to_owned()) }
}

fn count_of(number_text: &str, bytes: &str) -> Option<Count> {
    Some(Count { number: number(number_text)?, bytes: number(bytes)? })
}

/// Parses digits only: `parse` also accepts a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Shows a text without characters that separate records, as a space each.
struct OneLine<'t>(&'t str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.split(['\t', '\n']).enumerate() {
            if at > 0 {
                f.write_char(' ')?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Profile {
        let frame = |function: &str, line| Frame {
            function: function.to_owned(),
            file: "src/main.rs".to_owned(),
            line,
        };
        Profile {
            program: "shop".to_owned(),
            requests: 2,
            milliseconds: 1500,
            left_out: Count { number: 1, bytes: 9 },
            cut: 3,
            routes: vec![RouteRequests { requests: 2, route: "shop::cart".to_owned() }],
            frames: vec![frame("shop::price", 7), frame("<shop::Cart as Page>::write", 9)],
            stacks: vec![Stack {
                count: Count { number: 4, bytes: 80 },
                stage: Stage::Handler,
                route: "shop::cart".to_owned(),
                frames: vec![0, 1],
            }],
        }
    }

    fn written(profile: &Profile) -> Vec<u8> {
        let mut bytes = Vec::new();
        profile.write(&mut bytes).unwrap();
        bytes
    }

    const FILE: &str = "bine allocations 1\nprogram\tshop\nrequests\t2\nmilliseconds\t1500\n\
        left-out\t1\t9\ncut\t3\nroute\t2\tshop::cart\nframe\t7\tsrc/main.rs\tshop::price\n\
        frame\t9\tsrc/main.rs\t<shop::Cart as Page>::write\n\
        stack\t4\t80\thandler\tshop::cart\t0 1\nend\t10\n";

    #[test]
    fn writes_the_documented_file() {
        assert_eq!(String::from_utf8(written(&sample())).unwrap(), FILE);
        assert_eq!(Profile::read(FILE.as_bytes()), Ok(sample()));
    }

    #[track_caller]
    fn check(file: &str, message: &str) {
        let error = Profile::read(file.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }

    #[test]
    fn names_the_first_wrong_line() {
        check("", "line 1: this is no profile of allocations; start a program with");
        check("<html>\n", "line 1: this is no profile");
        check("bine allocations 1", "line 1: this is no profile");
        check("bine allocations 2\n", "line 1: the file has version \"2\" and this program reads");
        for (old, new, message) in [
            ("requests\t2", "requests\t-2", "line 3: a number is missing or too large"),
            ("requests\t2", "requests\t99999999999999999999", "line 3: a number is"),
            ("requests\t2", "requests", "line 3: a number is"),
            ("left-out\t1\t9", "left-out\t1", "line 5: a number is"),
            ("route\t2\tshop::cart", "route\t2", "line 7: the route has no name"),
            ("frame\t7\tsrc/main.rs", "frame\t7", "line 8: the function has no file or no name"),
            ("handler", "kitchen", "line 10: the stage has an unknown name"),
            ("\t0 1", "\t0 2", "line 10: the call stack names a function that no line above has"),
            ("\t0 1", "", "line 10: the call stack has too few parts"),
            ("\t0 1", "\t0 1\t", "line 10: the call stack has too many parts"),
            ("shop::price", "shop::\tprice", "line 8: the line has too many parts"),
            ("cut", "cat", "line 6: the line begins with an unknown word"),
            ("cut\t3\n", "", "line 10: the file has lost lines"),
        ] {
            assert!(FILE.contains(old));
            check(&FILE.replacen(old, new, 1), message);
        }
        let error = Profile::read(b"bine allocations 1\nprogram\t\xff\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: the line is not UTF-8 text");
    }

    #[test]
    fn rejects_every_truncation() {
        for length in 0..FILE.len() {
            assert!(Profile::read(&FILE.as_bytes()[..length]).is_err(), "{length}");
        }
        let cut = &FILE[..FILE.len() - 3];
        check(cut, "line 11: the file ends here and is incomplete; stop the program by SIGTERM");
    }

    fn count() -> impl Strategy<Value = Count> {
        (any::<u64>(), any::<u64>()).prop_map(|(number, bytes)| Count { number, bytes })
    }

    fn profile() -> impl Strategy<Value = Profile> {
        let name = "[^\t\n]{0,12}";
        let frames = prop::collection::vec((name, name, any::<u32>()), 1..8);
        let routes = prop::collection::vec((any::<u64>(), name), 0..4);
        let stage = (0..Stage::ALL.len()).prop_map(|at| Stage::ALL[at]);
        let calls = prop::collection::vec(any::<prop::sample::Index>(), 0..9);
        let stacks = prop::collection::vec((count(), stage, name, calls), 0..8);
        let numbers = (any::<u64>(), any::<u64>(), count(), any::<u64>());
        (name, numbers, routes, frames, stacks).prop_map(
            |(program, (requests, milliseconds, left_out, cut), routes, frames, stacks)| {
                let stack = |(count, stage, route, calls): (_, _, _, Vec<prop::sample::Index>)| {
                    let frames = calls.iter().map(|call| call.index(frames.len()) as u32);
                    Stack { count, stage, route, frames: frames.collect() }
                };
                let stacks = stacks.into_iter().map(stack).collect();
                let frame = |(function, file, line)| Frame { function, file, line };
                let frames = frames.iter().cloned().map(frame).collect();
                let route = |(requests, route)| RouteRequests { requests, route };
                let routes = routes.into_iter().map(route).collect();
                Profile { program, requests, milliseconds, left_out, cut, routes, frames, stacks }
            },
        )
    }

    proptest! {
        #[test]
        fn any_profile_survives_its_file(profile in profile()) {
            prop_assert_eq!(Profile::read(&written(&profile)), Ok(profile));
        }

        #[test]
        fn reads_any_changed_file_without_a_panic(
            profile in profile(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = written(&profile);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(read) = Profile::read(&bytes) {
                let known = read.frames.len() as u32;
                prop_assert!(read.stacks.iter().flat_map(|stack| &stack.frames).all(|at| *at < known));
                prop_assert_eq!(Profile::read(&written(&read)), Ok(read));
            }
        }

        #[test]
        fn writes_one_line_for_any_name(name in any::<String>()) {
            let profile = Profile { program: name, ..Profile::default() };
            let read = Profile::read(&written(&profile)).unwrap();
            prop_assert_eq!(read.program, profile.program.replace(['\t', '\n'], " "));
        }
    }
}

//! Errors: exceptions of scripts, and failures of calls.

use std::fmt;

use crate::limits::Limit;

/// An exception of a script, with true lines of its modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptError {
    /// The class, such as `TypeError`. Empty if the script has thrown a value that is no error.
    pub name: String,
    /// The message, or the thrown value in words.
    pub message: String,
    /// The calls that led to the exception, innermost first.
    pub frames: Vec<Frame>,
    /// The error's `cause`.
    pub cause: Option<Box<ScriptError>>,
    /// For an error while modules are loaded: the importing modules, outermost first, ending with
    /// the module that has failed.
    pub imports: Vec<String>,
    /// For a syntax error: the line with a marker below the column.
    pub excerpt: Option<String>,
}

/// One call of a stack trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function; empty for an anonymous one.
    pub function: String,
    /// The position in a module; `None` for a function of the engine or the host.
    pub position: Option<Position>,
}

/// A place in a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The module's path in the application, or the name of a built-in module.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// Why a call has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The script has thrown an exception. The instance can be used further.
    Exception(Box<ScriptError>),
    /// The call has exceeded a limit, so the instance was ended. The error has the position.
    Limit(Limit, Box<ScriptError>),
    /// The instance has ended before this call: another call has exceeded this limit.
    Ended(Limit),
    /// The caller made a mistake.
    Misuse(Misuse),
}

/// A mistake of the host that calls an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The instance is running: a host function has called it in place of using its `HostCall`.
    Reentered,
    /// The function belongs to another instance, or to a generation that has ended.
    ForeignFunction,
    /// More calls wait than [`Limits::calls`](crate::Limits::calls) allows.
    TooManyCalls,
}

impl ScriptError {
    pub(crate) fn new(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), message: message.into(), ..Self::default() }
    }

    /// The innermost position in a module of the application; else in any module.
    pub fn position(&self) -> Option<&Position> {
        let mut positions = self.frames.iter().filter_map(|frame| frame.position.as_ref());
        let own = positions.clone().find(|position| !position.is_built_in());
        own.or_else(|| positions.next())
    }
}

impl Position {
    /// Whether the file is a built-in module.
    pub fn is_built_in(&self) -> bool {
        self.file == "bine" || self.file.starts_with("bine:")
    }
}

impl Fault {
    /// The error of the script, if the fault has one.
    pub fn error(&self) -> Option<&ScriptError> {
        match self {
            Self::Exception(error) | Self::Limit(_, error) => Some(error),
            Self::Ended(_) | Self::Misuse(_) => None,
        }
    }
}

impl From<ScriptError> for Fault {
    fn from(error: ScriptError) -> Self {
        Self::Exception(Box::new(error))
    }
}

impl fmt::Display for ScriptError {
    /// One line with the error, then the imports, the excerpt, the frames and the cause.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name.as_str(), self.message.as_str()) {
            ("", message) => write!(out, "uncaught: {message}")?,
            (name, "") => out.write_str(name)?,
            (name, message) => write!(out, "{name}: {message}")?,
        }
        if self.imports.len() > 1 {
            write!(out, "\n    imported by {}", self.imports.join(" -> "))?;
        }
        if let Some(excerpt) = &self.excerpt {
            for line in excerpt.lines() {
                write!(out, "\n    {line}")?;
            }
        }
        for frame in &self.frames {
            write!(out, "\n    at {frame}")?;
        }
        self.cause.as_ref().map_or(Ok(()), |cause| write!(out, "\ncaused by {cause}"))
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = if self.function.is_empty() { "(anonymous)" } else { &self.function };
        match &self.position {
            Some(position) => write!(out, "{function} ({position})"),
            None => write!(out, "{function} (native)"),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exception(error) => error.fmt(out),
            Self::Limit(limit, error) => write!(out, "the limit of {limit} was exceeded: {error}"),
            Self::Ended(limit) => {
                write!(out, "the script has ended: the limit of {limit} was exceeded")
            }
            Self::Misuse(misuse) => misuse.fmt(out),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Reentered => "a host function has called the instance that was calling it",
            Self::ForeignFunction => "the function belongs to another instance",
            Self::TooManyCalls => "too many calls of this instance wait",
        })
    }
}

/// The line of a position in a source, with a marker below the column.
pub fn excerpt(source: &str, position: &Position) -> Option<String> {
    /// Characters before and after the column that are shown of a long line.
    const AROUND: usize = 60;
    let line = source.lines().nth(position.line.checked_sub(1)? as usize)?;
    let column = position.column.saturating_sub(1) as usize;
    let start = column.saturating_sub(AROUND);
    let shown: String = line.chars().skip(start).take(2 * AROUND).collect();
    let shown = shown.replace('\t', " ");
    let number = position.line.to_string();
    let indent = " ".repeat(column - start);
    let gutter = " ".repeat(number.len());
    Some(format!("{number} | {}\n{gutter} | {indent}^", shown.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_mark_the_column() {
        let position = |line, column| Position { file: "a".to_owned(), line, column };
        let shown = excerpt("one\n\tlet = 3;\n", &position(2, 6)).unwrap();
        assert_eq!(shown, "2 |  let = 3;\n  |      ^");
        let long = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt(&long, &position(1, 501)).unwrap();
        let (line, marker) = shown.split_once('\n').unwrap();
        assert_eq!(line.find('X'), marker.find('^'));
        assert_eq!(excerpt("one", &position(7, 1)), None);
    }
}

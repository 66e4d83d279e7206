//! All texts of the framework that a visitor may read, in one list, and the texts of errors.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Declares the messages of an enum: key, variant, values with an example each, and the English text;
/// then the variants that contain the messages of an area.
macro_rules! messages {
    (
        $(#[$enum_doc:meta])*
        enum $enum:ident;
        $(
            $(#[$doc:meta])*
            $key:literal $name:ident { $($(#[$value_doc:meta])* $value:ident: $type:ty = $example:expr),* }
            => $english:literal;
        )*
        areas { $($(#[$area_doc:meta])* $area:ident($area_type:ty);)* }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum $enum {
            $(
                $(#[$doc])*
                #[non_exhaustive]
                $name { $($(#[$value_doc])* $value: $type),* },
            )*
            $(
                $(#[$area_doc])*
                $area($area_type),
            )*
        }

        impl $enum {
            /// The key of the message, which does not change: `required`.
            pub const fn key(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $key,)*
                    $(Self::$area(message) => message.key(),)*
                }
            }

            /// One message of each kind, with example values, for a program that checks its own
            /// texts.
            pub fn examples() -> Vec<Self> {
                #[allow(unused_mut, reason = "not each enum has areas")]
                let mut all = vec![$(Self::$name { $($value: $example),* }),*];
                $(all.extend(<$area_type>::examples().into_iter().map(Self::$area));)*
                all
            }
        }

        impl fmt::Display for $enum {
            #[allow(unused_variables, reason = "not each English text has all values")]
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name { $($value),* } => write!(to, $english),)*
                    $(Self::$area(message) => message.fmt(to),)*
                }
            }
        }

        $(
            impl From<$area_type> for $enum {
                fn from(message: $area_type) -> Self {
                    Self::$area(message)
                }
            }

            impl From<$area_type> for MessageText {
                fn from(message: $area_type) -> Self {
                    <$enum>::$area(message).into()
                }
            }
        )*
    };
}

mod account;
mod api_token;

pub use account::AccountMessage;
pub use api_token::ApiTokenMessage;

messages! {
    /// A text of the framework that a visitor may read, with its values.
    ///
    /// [`App::messages`](crate::App::messages) replaces or translates it. [`Display`](fmt::Display)
    /// writes the English text. The text of a *detail* is the end of a sentence that begins with
    /// the name of a field; [`Argument`](Self::Argument) joins both.
    enum VisitorMessage;

    /// A detail: a column requires a value.
    "required" Required {} => "must be given";
    /// A detail: the value is not of the type of its column.
    "type" Type {
        /// The type, in English.
        expected: String = "true or false".to_owned()
    } => "must be {expected}";
    /// A detail: a text is too short or too long.
    "text_length" TextLength {
        /// The shortest allowed length, in characters.
        least: usize = 1,
        /// The longest allowed length.
        most: usize = 20,
        /// The length of the value.
        actual: usize = 21
    } => "must have from {least} to {most} letters, not {actual}";
    /// A detail: a value of bytes is too short or too long.
    "bytes_length" BytesLength {
        /// The shortest allowed length.
        least: usize = 1,
        /// The longest allowed length.
        most: usize = 20,
        /// The length of the value.
        actual: usize = 21
    } => "must have from {least} to {most} bytes, not {actual}";
    /// A detail: a number is too small or too large.
    "range" Range {
        /// The smallest allowed number.
        least: f64 = 18.0,
        /// The largest allowed number.
        most: f64 = 120.0,
        /// The value.
        actual: f64 = 7.0
    } => "must be from {least} to {most}, not {actual}";
    /// A detail: a different row has the same value in a unique column.
    "taken" Taken {} => "is taken already";
    /// A detail: a different row has the same values in unique columns.
    "taken_together" TakenTogether {
        /// The other columns, each in backticks.
        with: String = "`place`".to_owned()
    } => "is taken already, with the same {with}";
    /// A detail: the request does not have the argument.
    "missing" Missing {} => "is missing";
    /// A detail: a part of the request does not have the argument.
    "missing_from" MissingFrom {
        /// `form`, `query`, `path`, `fields` or `cookies`.
        place: String = "form".to_owned()
    } => "is missing from the {place}";
    /// A detail: the request has no content.
    "no_body" NoBody {} => "is missing: there is no body";
    /// A detail: the content of the request is not a form.
    "no_form" NoForm {} => "is missing: the body is not a form";
    /// A detail: the form is in an encoding without files.
    "no_file_form" NoFileForm {} => "is missing: send the form as `multipart/form-data`";
    /// A detail: the form has more fields than the server reads.
    "beyond_fields" BeyondFields {
        /// The number of fields that the server reads.
        most: u16 = 1000,
        /// `form` or `query`.
        place: String = "form".to_owned()
    } => "is not among the first {most} fields of the {place}: send fewer";
    /// A detail: the form is malformed.
    "broken_form" BrokenForm {
        /// The reason, in English.
        reason: String = "has no end".to_owned()
    } => "is not to be found: the form {reason}";
    /// A detail: a text is not UTF-8.
    "not_utf8" NotUtf8 {} => "is not UTF-8 text";
    /// A detail: the decoded text of an argument is not UTF-8.
    "not_encoded" NotEncoded {} => "is not encoded UTF-8 text";
    /// A detail: the text of a field is too long.
    "too_long" TooLong {} => "is longer than a megabyte";
    /// A detail: the content of the request is too long.
    "body_too_long" BodyTooLong {} => "is in a body of more than a megabyte";
    /// A detail: the server cannot read a file that it has stored.
    "unreadable" Unreadable {
        /// The error of the system, in English.
        reason: String = "input/output error".to_owned()
    } => "could not be read back from disk: {reason}";
    /// A detail: the content is not JSON by its media type.
    "json_type" JsonType {} => "must be sent as `Content-Type: application/json`";
    /// A detail: the JSON does not fit the type.
    "json" Json {
        /// The reason, in English.
        reason: String = "expected `,` at line 1 column 7".to_owned()
    } => "is not the JSON expected: {reason}";
    /// A detail: the value does not fit a type of the program.
    "unexpected" Unexpected {
        /// The reason, in English.
        reason: String = "unknown variant `x`".to_owned()
    } => "is not what is expected: {reason}";
    /// A detail: the argument has a type that a form cannot send.
    "not_from_form" NotFromForm {} => "cannot come from a form: send it as JSON";
    /// A detail: the service has no such argument.
    "unknown_argument" UnknownArgument {} => "is no argument of this service";
    /// A detail: the service has an argument with a similar name.
    "unknown_argument_near" UnknownArgumentNear {
        /// The similar name.
        near: String = "name".to_owned()
    } => "is no argument of this service; did you mean `{near}`?";
    /// A detail: the service does not have many of the arguments.
    "unknown_arguments" UnknownArguments {
        /// How many more there are.
        others: usize = 7
    } => "is no argument of this service, and {others} others are none";
    /// A detail: the program's type of a row does not accept the value.
    "type_refused" TypeRefused {} => "has a value that the program's type does not accept";
    /// A detail: the text is not an integer within the limits of its type.
    "integer_range" IntegerRange {
        /// The smallest number.
        least: i32 = 0,
        /// The largest number.
        most: i32 = 255,
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be a whole number from {least} to {most}, not `{text}`";
    /// A detail: the text is not an integer from zero.
    "unsigned" Unsigned {
        /// The text that was sent.
        text: String = "-1".to_owned()
    } => "must be a whole number that is not negative, not `{text}`";
    /// A detail: the text is not an integer.
    "integer" Integer {
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be a whole number, not `{text}`";
    /// A detail: the text is not a number.
    "number" Number {
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be a number, not `{text}`";
    /// A detail: the text is not one character.
    "character" Character {} => "must be one character";
    /// A detail: the text is not an id.
    "id" Id {
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be an id, not `{text}`";
    /// A detail: the text is not a moment.
    "moment" Moment {
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be a moment in UTC, like 2026-11-21T09:30:00Z, not `{text}`";
    /// A detail: the text is not a truth value.
    "boolean" Boolean {
        /// The text that was sent.
        text: String = "x".to_owned()
    } => "must be true or false, not `{text}`";
    /// A detail: the text is not base64.
    "base64" Base64 {} => "must be bytes in base64";
    /// A detail: the text is not a cursor.
    "cursor" Cursor {} => "is not a place in the order";
    /// A detail: the browser rejects cookies, and a frame needs one.
    "cookies_needed" CookiesNeeded {}
        => "is kept with a cookie: allow this site to set one, and load the page again";

    /// The name of a field for people, alone.
    "label" Label {
        /// The name of the column.
        name: String = "mail".to_owned(),
        /// Its label in the program.
        label: String = "E-mail".to_owned()
    } => "{label}";
    /// A field with its detail, as a sentence.
    "argument" Argument {
        /// The label, or the name in backticks.
        subject: String = "E-mail".to_owned(),
        /// The detail, in the language of the visitor.
        detail: String = "is taken already".to_owned()
    } => "{subject} {detail}";

    /// The title of an error page.
    "title" Title {
        /// The code of the status.
        status: u16 = 404,
        /// The reason phrase of the status.
        reason: &'static str = "Not Found"
    } => "{reason}";
    /// The link of an error page to the page of the form.
    "back" Back {} => "Back";
    /// The program has failed (500).
    "failed" Failed {} => "Something went wrong here. It has been noted.";
    /// The message of an error of the program (500), with its number in the log.
    "numbered" Numbered {
        /// The message of the error.
        message: String = "Something went wrong here. It has been noted.".to_owned(),
        /// The number of the error in the log, eight hexadecimal digits.
        number: String = "3f08c1d2".to_owned()
    } => "{message} Its number in the log is {number}.";
    /// The path does not exist (404).
    "nothing_here" NothingHere {} => "There is nothing at this address.";
    /// The path does not answer the method (405).
    "method" Method {
        /// The method.
        method: String = "POST".to_owned()
    } => "{method} is not what this address answers.";
    /// The file does not exist (404).
    "no_file" NoFile {} => "there is no such file";
    /// The path of a file is that of a folder or a device (404).
    "not_a_file" NotAFile {} => "this is not a file";
    /// The visitor has to log in (401).
    "log_in_first" LogInFirst {
        /// The name of the rule, such as `users`.
        rule: String = "users".to_owned()
    } => "This is for {rule}. Log in first.";
    /// The token of the call does not satisfy the rule (401).
    "token_not_accepted" TokenNotAccepted {
        /// The name of the rule.
        rule: String = "cellars".to_owned()
    } => "This is for {rule}. The token of the request is not valid for it.";
    /// The visitor has no permission (403).
    "not_allowed" NotAllowed {
        /// The name of the rule.
        rule: String = "brewers".to_owned()
    } => "This is for {rule}.";
    /// The visitor has to log in to use the path (401).
    "log_in_to_see" LogInToSee {} => "Log in to see this.";
    /// The user has no right to use the path (403).
    "no_right" NoRight {} => "You do not have the right to see this.";
    /// The API token of the request is not valid (401).
    "invalid_token" InvalidToken {}
        => "The API token is unknown, was revoked or has expired. Create a new one.";
    /// The API token of the request does not permit it (403).
    "token_scope" TokenScope {
        /// Its permissions.
        scope: String = "read /api/*".to_owned()
    } => "The API token does not permit this request. It permits: {scope}.";
    /// A request with an API token logs in (403).
    "log_in_by_token" LogInByToken {}
        => "A request with an API token cannot log in. Send it without the token.";
    /// A page of a different site has called a service (403).
    "another_site_calls" AnotherSiteCalls {} => "A page of another site may not call this.";
    /// A page of a different site has sent a form (403).
    "another_site_sends" AnotherSiteSends {} => "A page of another site may not send this here.";
    /// The page of the form belongs to a different session (403).
    "page_of_other_visit" PageOfOtherVisit {}
        => "This page is older than your visit, or was made for somebody else. Go back, and load it again.";
    /// The page of the form is from an earlier version of the program (410).
    "page_of_old_program" PageOfOldProgram {}
        => "This page is older than the program that serves it. Go back, and load it again.";
    /// The content is neither JSON nor a form (415).
    "media_type" MediaType {} => "Send the arguments as `application/json`, or from a form.";
    /// The content cannot be read (400).
    "malformed" Malformed {
        /// The reason, in English.
        reason: String = "the form is not UTF-8 text".to_owned()
    } => "{reason}";
    /// A row does not exist any more (404).
    "row_gone" RowGone {} => "what this is about is not there any more";
    /// Other rows still refer to the row to be removed (409).
    "row_in_use" RowInUse {
        /// The table with the other rows.
        by: String = "order".to_owned()
    } => "rows of `{by}` name this row still";
    /// A concurrent request has changed the same data (409).
    "conflict" Conflict {} => "others changed the same at the same time; try again";
    /// Too many changes wait for the disk (503).
    "writes_busy" WritesBusy {} => "too many changes wait for the disk; try again";
    /// A row or a commit is too large (413).
    "row_too_large" RowTooLarge {} => "a row may have at most 8 MB, and a commit 64 MB";
    /// The disk is full (507).
    "disk_full" DiskFull {} => "the disk is full: nothing was written";
    /// Changes cannot be saved (503).
    "cannot_save" CannotSave {} => "changes cannot be saved at the moment";
    /// The server does not know whether a change was saved (503).
    "maybe_saved" MaybeSaved {} => "the change may have been saved or not; look before you repeat it";
    /// The cursor in the address is invalid (400).
    "bad_cursor" BadCursor {} => "the cursor is invalid or belongs to a different order";
    /// The values of a session are too large (413).
    "session_full" SessionFull {
        /// The most bytes.
        most: usize = 4096
    } => "a session holds {most} bytes of values, not more";
    /// The values of a frame are too large (413).
    "frame_full" FrameFull {
        /// The most bytes.
        most: usize = 4096
    } => "a frame holds {most} bytes of values, not more";
    /// The session has ended (409).
    "session_ended" SessionEnded {}
        => "this session was ended in another place; load the page again";
    /// The calling page has no frame (400).
    "no_frame" NoFrame {} => "The page that called has no frame, or one that has ended. Load it again.";
    /// A name that logs in is not the name of a user (422).
    "user_name" UserName {
        /// The reason, in English.
        reason: String = "\"\" is no name of a user".to_owned()
    } => "{reason}";
    /// The title of the page under overload (503).
    "busy_title" BusyTitle {} => "Please come again";
    /// The text of the page under overload.
    "busy_page" BusyPage {}
        => "The server is busy: more visitors are here than it can serve at the moment. \
            It will not take long: load this page again in a minute.";
    /// The text under overload, for clients that do not read pages.
    "busy" Busy {} => "the server is busy: too many visitors at the moment; try again soon";
    /// The content of the request is over its limit (413).
    "too_large" TooLarge {} => "The content is too large.";
    /// A queue of the server is full (503).
    "server_busy" ServerBusy {} => "the server is busy; try again in a moment";
    /// The handler did not finish in time (504). The language is the default one.
    "took_too_long" TookTooLong {} => "the page took too long";
    /// The request is malformed (400), too late (408), or its head is too large (431), and the like.
    /// The language is the default one.
    "request_fault" RequestFault {
        /// The code of the status.
        status: u16 = 431,
        /// The reason, in English.
        reason: String = "The request head is too large.".to_owned()
    } => "{reason}";
    /// The server does not answer for the host of the address (421).
    "unknown_host" UnknownHost {}
        => "This server does not answer for this host. Its operator can add the host to the key `hosts`, like hosts = [\"example.org\"].";

    areas {
        /// A text of the pages of accounts.
        Account(AccountMessage);
        /// A text of the pages of API tokens.
        ApiToken(ApiTokenMessage);
    }
}

/// A text for a visitor: the program's own, or a [`VisitorMessage`] of the framework.
///
/// The program's own text is an error of [`FromText`](crate::FromText) by
/// `"must be odd".into()`. It dereferences to the text, in English for a message of the framework.
#[derive(Clone)]
pub struct MessageText {
    english: Cow<'static, str>,
    message: Option<Box<VisitorMessage>>,
}

impl MessageText {
    /// The message of the framework, if it is one.
    pub fn message(&self) -> Option<&VisitorMessage> {
        self.message.as_deref()
    }
}

impl From<VisitorMessage> for MessageText {
    fn from(message: VisitorMessage) -> Self {
        Self { english: message.to_string().into(), message: Some(Box::new(message)) }
    }
}

impl From<Cow<'static, str>> for MessageText {
    fn from(english: Cow<'static, str>) -> Self {
        Self { english, message: None }
    }
}

impl From<String> for MessageText {
    fn from(text: String) -> Self {
        Cow::<str>::Owned(text).into()
    }
}

impl From<&'static str> for MessageText {
    fn from(text: &'static str) -> Self {
        Cow::Borrowed(text).into()
    }
}

impl Deref for MessageText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.english
    }
}

/// Texts are equal if their English texts are.
impl PartialEq for MessageText {
    fn eq(&self, other: &Self) -> bool {
        self.english == other.english
    }
}

impl Eq for MessageText {}

impl fmt::Display for MessageText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.english)
    }
}

impl fmt::Debug for MessageText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.english, to)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Subsystems whose texts are for programs, scripts and administrators, and the tests.
    const OTHERS: [&str; 8] =
        ["acme", "channels", "data_browser", "live", "remote", "rights", "test", "websocket"];
    /// Tests, and commands of the operator.
    const FILES: [&str; 2] = ["tests.rs", "commands.rs"];
    /// Calls that take a text for a visitor.
    const CALLS: [&str; 15] = [
        "Error::bad_request(",
        "Error::conflict(",
        "Error::content_too_large(",
        "Error::forbidden(",
        "Error::gone(",
        "Error::internal(",
        "Error::not_found(",
        "Error::status(",
        "Error::unauthorized(",
        "Error::unavailable(",
        "Error::unprocessable(",
        "Rejection::invalid(",
        "Response::error(",
        "invalid_argument(",
        "write_error(",
    ];
    /// Mistakes of a program, which its developer reads, and texts of the log.
    const MISTAKES: [&str; 6] = [
        "it took too long",
        "the server is starting",
        "needs accounts",
        "needs tables",
        "needs sessions",
        "is not a state",
    ];

    fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !OTHERS.contains(&name) {
                    sources(&path, all);
                }
            } else if path.extension().is_some_and(|end| end == "rs") && !FILES.contains(&name) {
                all.push(path);
            }
        }
    }

    /// A text elsewhere would not reach the function of the program.
    #[test]
    fn the_core_has_no_other_texts_for_visitors() {
        let mut all = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        assert!(all.len() > 50, "{}", all.len());
        let mut found = Vec::new();
        for path in all {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code: String = lines.map(|line| line.trim().to_owned() + " ").collect();
            for call in CALLS {
                for (place, _) in code.match_indices(call) {
                    let rest: String = code[place + call.len()..].chars().take(160).collect();
                    // The arguments end before the next statement.
                    let arguments = rest.split(';').next().unwrap();
                    let is_text =
                        arguments.contains('"') && !arguments.contains("VisitorMessage::");
                    if is_text && !MISTAKES.iter().any(|mistake| arguments.contains(mistake)) {
                        found.push(format!("{}: {call}{arguments}", path.display()));
                    }
                }
            }
        }
        assert!(found.is_empty(), "write a `VisitorMessage` for each:\n{}", found.join("\n"));
    }
}

//! Subjects and their rights.

use std::fmt;

use crate::text::Text;
use crate::user_name::{UserName, name_key};

/// A subject of a rule: one user, the members of a group, or everyone.
///
/// In the configuration file and on the command line a subject is one word: `anonymous`, `users`,
/// `administrators`, `group:editors`, `ann`, or `user:ann` for a user whose name reads like another
/// subject.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Who {
    /// Every visitor, with or without a login. A right of `anonymous` is everyone's.
    Anonymous,
    /// All logged-in users.
    Users,
    /// The members of the group `administrators`.
    Administrators,
    /// The members of the group with this name.
    Group(Text),
    /// The user with this name.
    User(Text),
}

/// A right: a path is read or written, a channel is followed, published to or managed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Right {
    /// Safe requests for a path: GET, HEAD, OPTIONS and QUERY.
    Read,
    /// All requests for a path. It includes [`Right::Read`].
    Write,
    /// Read a channel's messages and wait for more.
    Follow,
    /// Publish in a channel.
    Publish,
    /// Create, renew, close and remove a channel.
    Manage,
}

/// The group whose members administer the server.
pub(super) const ADMINISTRATORS: &str = "administrators";
/// The user that represents every visitor.
pub(super) const ANONYMOUS: &str = "anonymous";
/// The group of all logged-in users.
pub(super) const USERS: &str = "users";
/// The actor of changes on the server's machine.
pub(super) const CONSOLE: &str = "console";

const GROUP: &str = "group:";
const USER: &str = "user:";

impl Who {
    /// The user with this name.
    pub fn user(name: impl Into<Text>) -> Self {
        Self::User(name.into())
    }

    /// The members of the group with this name.
    pub fn group(name: impl Into<Text>) -> Self {
        let name = name.into();
        match &*name {
            ADMINISTRATORS => Self::Administrators,
            USERS => Self::Users,
            _ => Self::Group(name),
        }
    }

    /// Parses one word of a rule.
    ///
    /// # Errors
    ///
    /// The name is invalid; the message names the correction.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let who = match text {
            ANONYMOUS => Self::Anonymous,
            USERS => Self::Users,
            ADMINISTRATORS => Self::Administrators,
            _ => match (text.strip_prefix(GROUP), text.strip_prefix(USER)) {
                (Some(name), _) => Self::group(name),
                (None, Some(name)) => Self::user(name),
                (None, None) => Self::user(text),
            },
        };
        who.checked()
    }

    /// Checks the name.
    ///
    /// # Errors
    ///
    /// The name is invalid; the message names the correction.
    pub(super) fn checked(self) -> Result<Self, String> {
        match &self {
            Self::Group(name) => check_group(name)?,
            Self::User(name) => check_user(name)?,
            Self::Anonymous | Self::Users | Self::Administrators => {}
        }
        Ok(self)
    }
}

/// Checks the name of a user who may have rights and groups.
///
/// # Errors
///
/// The name is invalid or reserved.
pub(super) fn check_user(name: &str) -> Result<(), String> {
    UserName::parse(name).map_err(|error| error.to_string())?;
    // In any spelling: accounts compare names without regard to case.
    match &*name_key(name) {
        ANONYMOUS | USERS | ADMINISTRATORS | CONSOLE => {
            Err(format!("`{name}` is reserved and cannot be the name of a user"))
        }
        _ => Ok(()),
    }
}

/// Checks the name of a group that may have members.
///
/// # Errors
///
/// The name is invalid or reserved.
pub(super) fn check_group(name: &str) -> Result<(), String> {
    let is_right = UserName::parse(name).is_ok() && !name.contains([',', ':']);
    match name {
        ANONYMOUS | CONSOLE => Err(format!("`{name}` is reserved and cannot be a group")),
        USERS => Err("everyone who has logged in is in `users`; it has no other members".into()),
        _ if is_right => Ok(()),
        _ => Err(format!(
            "{name:?} is no name of a group: use 1 to 200 letters, without control characters, white space at the ends, and / * {{ }} , :"
        )),
    }
}

impl fmt::Display for Who {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => to.write_str(ANONYMOUS),
            Self::Users => to.write_str(USERS),
            Self::Administrators => to.write_str(ADMINISTRATORS),
            Self::Group(name) => write!(to, "{GROUP}{name}"),
            Self::User(name) if name.starts_with(GROUP) || name.starts_with(USER) => {
                write!(to, "{USER}{name}")
            }
            Self::User(name) => to.write_str(name),
        }
    }
}

impl Right {
    /// The rights for paths, and those for channels. Their order is the order of the levels.
    pub(super) const OF_PATHS: [Self; 2] = [Self::Read, Self::Write];
    pub(super) const OF_CHANNELS: [Self; 3] = [Self::Follow, Self::Publish, Self::Manage];

    /// The name in rules and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Follow => "follow",
            Self::Publish => "publish",
            Self::Manage => "manage",
        }
    }

    /// Whether it is a right for channels.
    pub(super) const fn is_for_channels(self) -> bool {
        matches!(self, Self::Follow | Self::Publish | Self::Manage)
    }

    /// Parses the name.
    ///
    /// # Errors
    ///
    /// There is no such right; the message names all.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::OF_PATHS.into_iter().chain(Self::OF_CHANNELS);
        all.find(|right| right.name() == text).ok_or_else(|| {
            format!(
                "there is no right `{text}`: a path has read and write, a channel has follow, publish and manage"
            )
        })
    }
}

impl fmt::Display for Right {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

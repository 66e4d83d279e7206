//! Decides as whom the server runs once its addresses are open: an ordinary user, switched to
//! before any thread starts, because a thread keeps the rights it was born with.

use std::fmt;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user to become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    uid: u32,
    gid: u32,
}

/// Why a user cannot be found.
#[derive(Debug)]
pub enum UnknownUser {
    /// Neither a name that /etc/passwd has nor `UID:GID`.
    Name(String),
    /// /etc/passwd cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for UnknownUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                write!(f, "no user `{name}` in /etc/passwd; name one there, or write UID:GID")
            }
            Self::Unreadable(error) => write!(f, "/etc/passwd cannot be read: {error}"),
        }
    }
}

impl std::error::Error for UnknownUser {}

impl User {
    /// The user called `name`, or `UID:GID`.
    ///
    /// # Errors
    ///
    /// When there is no such user.
    pub fn find(name: &str) -> Result<Self, UnknownUser> {
        let numbers = name
            .split_once(':')
            .and_then(|(uid, gid)| Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? }));
        if let Some(user) = numbers {
            return Ok(user);
        }
        let table = std::fs::read_to_string("/etc/passwd").map_err(UnknownUser::Unreadable)?;
        find_in(&table, name).ok_or_else(|| UnknownUser::Name(name.to_owned()))
    }

    /// Becomes this user, for good. Call it with the addresses open and no thread started.
    ///
    /// # Errors
    ///
    /// The system's, when this process may not.
    pub fn become_it(&self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        // Groups first: afterwards there would be no right to change them.
        set_thread_groups(&[gid])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }

    /// Makes a file or folder this user's. Call it before [`become_it`](Self::become_it).
    ///
    /// # Errors
    ///
    /// The system's, when this process may not.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

/// A line is `name:password:uid:gid:...` (passwd(5)).
fn find_in(table: &str, name: &str) -> Option<User> {
    let mut lines = table.lines().map(|line| line.split(':'));
    let mut fields = lines.find(|fields| fields.clone().next() == Some(name))?.skip(2);
    Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_or_by_numbers() {
        let table = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:34:www:/var/www:/bin/false\n";
        assert_eq!(find_in(table, "www-data"), Some(User { uid: 33, gid: 34 }));
        assert_eq!(find_in(table, "www"), None);
        assert_eq!(User::find("1000:100").unwrap(), User { uid: 1000, gid: 100 });
        assert!(User::find("nobody-of-that-name").unwrap_err().to_string().contains("UID:GID"));
    }
}

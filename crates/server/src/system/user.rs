//! The switch to an unprivileged user after the server has opened its addresses.

use std::fmt;
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;

/// A user and group to switch to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    uid: u32,
    gid: u32,
}

/// The reason why a user was not found.
#[derive(Debug)]
pub enum UnknownUser {
    /// The text is neither a name in /etc/passwd nor `UID:GID`.
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
    /// Finds a user by name, or by `UID:GID`.
    ///
    /// # Errors
    ///
    /// Returns an error when the user does not exist.
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

    /// Switches all threads of this process to the user permanently. Call it after the addresses are
    /// open.
    ///
    /// # Errors
    ///
    /// Returns the system's error when the process lacks the privilege.
    pub fn become_it(&self) -> io::Result<()> {
        let (uid, gid) = (self.uid, self.gid);
        // The functions of the C library switch each thread (nptl(7)), the system calls only their
        // own. A thread that writes the log may have started before. Groups first: the switched user
        // may not change them.
        // SAFETY: the list has one group, and the call only reads it.
        succeeded(unsafe { libc::setgroups(1, &raw const gid) })?;
        // SAFETY: numbers are passed by value.
        succeeded(unsafe { libc::setresgid(gid, gid, gid) })?;
        // SAFETY: numbers are passed by value.
        succeeded(unsafe { libc::setresuid(uid, uid, uid) })
    }

    /// Makes this user the owner of a file or folder. Call it before
    /// [`become_it`](Self::become_it).
    ///
    /// # Errors
    ///
    /// Returns the system's error when the process lacks the privilege.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Finds a user in the text of /etc/passwd, whose lines are `name:password:uid:gid:...`
/// (passwd(5)).
fn find_in(table: &str, name: &str) -> Option<User> {
    let mut lines = table.lines().map(|line| line.split(':'));
    let mut fields = lines.find(|fields| fields.clone().next() == Some(name))?.skip(2);
    Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_users_by_name_or_by_ids() {
        let table = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:34:www:/var/www:/bin/false\n";
        assert_eq!(find_in(table, "www-data"), Some(User { uid: 33, gid: 34 }));
        assert_eq!(find_in(table, "www"), None);
        assert_eq!(User::find("1000:100").unwrap(), User { uid: 1000, gid: 100 });
        assert!(User::find("nobody-of-that-name").unwrap_err().to_string().contains("UID:GID"));
    }

    #[test]
    fn reports_the_error_of_a_failed_call() {
        assert!(succeeded(0).is_ok());
        // SAFETY: the descriptor is not open, so the call has no effect.
        let failed = unsafe { libc::close(-1) };
        assert_eq!(succeeded(failed).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}

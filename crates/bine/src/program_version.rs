//! The version of the running program, by which an open page learns that a new one serves it.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// The file of the running program, also after a new version has replaced it on the disk.
const PROGRAM: &str = "/proc/self/exe";
/// The type of a segment of notes in ELF, and of the note with the build id.
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;
/// Notes take some hundred bytes.
const MAX_NOTES: u64 = 64 << 10;

/// Returns a number that identifies this build of the program and its assets, whose hash is
/// `assets`. A restart, a reload of the configuration, and a copy of the same build keep it.
///
/// The markup of pages is part of the program, so two builds with equal numbers write equal
/// constants. The build id is the linker's hash of the program. A program without one is identified
/// by its size and the time of its last change: a copy may then count as a new version.
pub(crate) fn program_version(assets: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    assets.hash(&mut hasher);
    match File::open(PROGRAM).and_then(|file| build_id(&file)) {
        Ok(Some(id)) => id.hash(&mut hasher),
        Ok(None) | Err(_) => {
            let file = fs::metadata(PROGRAM);
            let file = file.map(|file| (file.len(), file.mtime(), file.mtime_nsec()));
            file.ok().hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Reads the build id of a program in the format ELF, 64 bits. `None`: it has none.
fn build_id(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    if !head.starts_with(b"\x7fELF\x02") {
        return Ok(None);
    }
    let (first, size, count) = (number(&head[32..40]), short(&head[54..56]), short(&head[56..58]));
    for index in 0..u64::from(count) {
        let mut segment = [0; 56];
        file.read_exact_at(&mut segment, first.saturating_add(index * u64::from(size)))?;
        if word(&segment[..4]) == PT_NOTE {
            let mut notes = vec![0; number(&segment[32..40]).min(MAX_NOTES) as usize];
            file.read_exact_at(&mut notes, number(&segment[8..16]))?;
            if let Some(id) = build_id_among(&notes) {
                return Ok(Some(id.to_owned()));
            }
        }
    }
    Ok(None)
}

/// Finds the build id among notes. Each has the sizes of its name and its content, a type, the name
/// and the content; both are padded to four bytes.
fn build_id_among(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let (name, content) = (word(&head[..4]) as usize, word(&head[4..8]) as usize);
        let (own_name, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if word(&head[8..]) == NT_GNU_BUILD_ID && own_name == b"GNU\0" {
            return rest.get(..content);
        }
        notes = rest.get(content.next_multiple_of(4)..)?;
    }
}

// The numbers have the byte order of this machine, since it runs the program. Each caller passes a
// part of the right length.

fn short(bytes: &[u8]) -> u16 {
    bytes.try_into().map_or(0, u16::from_ne_bytes)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_ne_bytes)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depends_on_the_assets_and_is_stable() {
        assert_eq!(program_version("a"), program_version("a"));
        assert_ne!(program_version("a"), program_version("b"));
    }

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [name.len() as u32, content.len() as u32, kind] {
            note.extend(number.to_ne_bytes());
        }
        for part in [name, content] {
            note.extend_from_slice(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn finds_the_build_id_among_other_notes() {
        let id = note(b"GNU\0", NT_GNU_BUILD_ID, &[7; 20]);
        let other = note(b"GNU\0", 1, &[1, 2, 3, 4, 5]);
        let foreign = note(b"stapsdt\0", NT_GNU_BUILD_ID, &[9; 3]);
        for before in [vec![], other.clone(), [&other[..], &foreign].concat()] {
            assert_eq!(build_id_among(&[&before[..], &id].concat()), Some(&[7; 20][..]));
        }
        assert_eq!(build_id_among(&foreign), None);
    }

    #[test]
    fn ignores_cut_notes() {
        let id = note(b"GNU\0", NT_GNU_BUILD_ID, &[7; 20]);
        for length in 0..id.len() {
            assert_eq!(build_id_among(&id[..length]), None, "{length}");
        }
        let mut endless = id;
        endless[..4].fill(0xff);
        assert_eq!(build_id_among(&endless), None);
    }

    #[test]
    fn reads_no_build_id_of_other_files() {
        let path = std::env::temp_dir().join(format!("bine-no-program-{}", std::process::id()));
        for content in [&b"#!/bin/sh"[..], &[b' '; 100]] {
            fs::write(&path, content).unwrap();
            let id = build_id(&File::open(&path).unwrap());
            assert!(!matches!(id, Ok(Some(_))));
        }
        fs::remove_file(&path).unwrap();
    }
}

//! The demo's gallery: one drawing in files from a kilobyte to a hundred megabytes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bine::prelude::*;

/// Name and length in bytes of each file.
const FILES: [(&str, u64); 6] = [
    ("1-kB.bmp", 1_000),
    ("10-kB.bmp", 10_000),
    ("100-kB.bmp", 100_000),
    ("1-MB.bmp", 1_000_000),
    ("10-MB.bmp", 10_000_000),
    ("100-MB.bmp", 100_000_000),
];
/// The page shows files up to this length as pictures, and links to longer ones.
const MAX_SHOWN_LENGTH: u64 = 1_000_000;
/// The length of `BITMAPFILEHEADER` and `BITMAPINFOHEADER`.
const HEADER_LENGTH: u64 = 54;

/// The folder that contains `gallery/`, which contains the files.
pub(crate) struct Gallery {
    folder: PathBuf,
}

impl Gallery {
    /// Creates the folder. The files are drawn later, by [`filler`](Self::filler).
    pub(crate) fn open() -> io::Result<Self> {
        let folder = place().join("bine-demo");
        fs::create_dir_all(folder.join("gallery"))?;
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a function that starts a thread, which draws the missing files while the server
    /// runs.
    pub(crate) fn filler(&self) -> impl FnOnce() + use<> {
        let folder = self.folder.join("gallery");
        move || {
            let fill = move || {
                remove_abandoned(&folder);
                for (name, length) in FILES {
                    if length_of(&folder.join(name)) == Some(length) {
                        continue;
                    }
                    if let Err(error) = create_file(&folder, name, length) {
                        eprintln!("bine: warning: cannot draw {name} of the gallery: {error}");
                        return;
                    }
                }
            };
            if let Err(error) = thread::Builder::new().name("gallery".to_owned()).spawn(fill) {
                eprintln!("bine: warning: cannot start the thread that draws the gallery: {error}");
            }
        }
    }
}

/// Returns the cache folder (XDG Base Directory Specification), else the folder for temporary
/// files.
fn place() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let absolute = |path: &PathBuf| path.is_absolute();
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    named.or_else(|| home().filter(absolute)).unwrap_or_else(std::env::temp_dir)
}

/// Removes temporary files of processes that ended before they had drawn them.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().filter(|name| name.starts_with('.'));
        let process = process.and_then(|name| name.rsplit('.').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates a file under a temporary name and renames it, so that readers never see a partial file.
fn create_file(folder: &Path, name: &str, length: u64) -> io::Result<()> {
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let result = File::create(&temporary)
        .and_then(|file| draw(BufWriter::with_capacity(1 << 18, file), length))
        .and_then(|()| fs::rename(&temporary, folder.join(name)));
    if result.is_err() {
        // The temporary file may not exist; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn length_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Returns the side of the drawing in pixels for a file of this length.
const fn side(length: u64) -> u64 {
    let mut side = 1;
    while HEADER_LENGTH + (side + 1) * row_length(side + 1) <= length {
        side += 1;
    }
    side
}

/// Returns the length of a row of pixels, which is padded to a multiple of four.
const fn row_length(side: u64) -> u64 {
    (side * 3).next_multiple_of(4)
}

/// Writes a square bitmap, followed by zeros up to `length`, which readers of bitmaps ignore.
fn draw(mut out: impl Write, length: u64) -> io::Result<()> {
    let side = side(length);
    let pixels = side * row_length(side);
    let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    out.write_all(b"BM")?;
    for field in [length, 0, HEADER_LENGTH, 40, side, side] {
        out.write_all(&word(field))?;
    }
    // One plane, 24 bits a pixel; no compression.
    out.write_all(&[1, 0, 24, 0])?;
    for field in [0, pixels, 2835, 2835, 0, 0] {
        out.write_all(&word(field))?;
    }
    let mut line = vec![0; row_length(side) as usize];
    for y in 0..side {
        for x in 0..side {
            let at = |index: u64| (index as f32 + 0.5) / side as f32 * 2.0 - 1.0;
            line[x as usize * 3..][..3].copy_from_slice(&color(at(x), at(y)));
        }
        out.write_all(&line)?;
    }
    io::copy(&mut io::repeat(0).take(length - HEADER_LENGTH - pixels), &mut out)?;
    out.flush()
}

/// Returns the color (blue, green, red) of a point of the drawing, with `x` and `y` from -1 to 1: a
/// hop cone from above, with 8 spirals to the left and 13 to the right, as plants have them.
fn color(x: f32, y: f32) -> [u8; 3] {
    let distance = x.hypot(y).max(1e-3);
    let angle = y.atan2(x);
    let depth = distance.ln() * 4.6;
    let scales = ((angle * 8.0 + depth).sin() * (angle * 13.0 - depth * 1.618).sin()).abs().sqrt();
    let light = (1.05 - distance * 0.62).clamp(0.0, 1.0) * (0.35 + 0.65 * scales);
    let paper = ((distance - 0.93) / 0.05).clamp(0.0, 1.0);
    #[allow(clippy::cast_sign_loss, reason = "a color between two colors is not negative")]
    let mix = |dark: f32, bright: f32, ground: f32| {
        let leaf = dark + (bright - dark) * light;
        // The result is between the three colors, so between 0 and 255.
        (leaf + (ground - leaf) * paper) as u8
    };
    [mix(24.0, 120.0, 220.0), mix(52.0, 222.0, 242.0), mix(20.0, 190.0, 233.0)]
}

/// Shows the files as pictures or links.
#[page("/gallery")]
pub(crate) async fn gallery(gallery: State<Gallery>) -> impl Respond {
    let folder = gallery.folder.join("gallery");
    let files = FILES.map(|(name, length)| Entry {
        name,
        length,
        exists: length_of(&folder.join(name)) == Some(length),
    });
    html! {
        <h1>"The gallery"</h1>
        <p class="lead">
            "One drawing, six sizes, from a kilobyte to a hundred megabytes. Small files are answered from
            memory, large ones go from the disk to the socket without passing through the server."
        </p>
        <ul class="cards">
            {for file in files { <li>{card(file)}</li> }}
        </ul>
        <h2>"Try it"</h2>
        <p>"Parts, conditions and the rest of HTTP work as they should:"</p>
        <pre><code>{TRY}</code></pre>
    }
    .with_title("The gallery")
}

const TRY: &str = "\
curl --range 0-99 --output part http://127.0.0.1:8080/gallery/10-MB.bmp
curl --head http://127.0.0.1:8080/gallery/100-MB.bmp
curl --output /dev/null http://127.0.0.1:8080/gallery/100-MB.bmp
";

#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    length: u64,
    exists: bool,
}

fn card(file: Entry) -> impl Html<Flow> {
    let Entry { name, length, exists } = file;
    let side = side(length);
    let address = format!("/gallery/{name}");
    // A file that is being drawn has no address yet.
    let address = exists.then_some(address);
    let picture = address.clone().filter(|_| length <= MAX_SHOWN_LENGTH);
    html! {
        <a class="card" href={address}>
            {match picture {
                Some(source) => { <img src={source} alt="A hop cone from above, drawn by this server" width={side} height={side} loading="lazy"> }
                None => {}
            }}
            <h2>{name}</h2>
            <p>
                {side}" by "{side}" pixels"
                {if !exists { ", being drawn" }}
            </p>
        </a>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_partial_files_of_ended_processes_only() {
        let folder = std::env::temp_dir().join(format!("bine-gallery-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        // No process has the highest number: Linux ends below 2^22.
        let own = format!(".10-MB.bmp.{}", std::process::id());
        for name in [&*own, ".10-MB.bmp.4194305", "10-MB.bmp", ".hidden"] {
            fs::write(folder.join(name), "").unwrap();
        }
        remove_abandoned(&folder);
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, [&*own, ".hidden", "10-MB.bmp"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn draws_bitmap_of_exact_length() {
        for (name, length) in &FILES[..4] {
            let mut bytes = Vec::new();
            draw(&mut bytes, *length).unwrap();
            assert_eq!(bytes.len() as u64, *length, "{name}");
            assert!(bytes.starts_with(b"BM"), "{name}");
            let number =
                |at: usize| u64::from(u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()));
            assert_eq!(
                (number(2), number(18), number(22)),
                (*length, side(*length), side(*length))
            );
        }
    }

    #[test]
    fn draws_largest_square_that_fits() {
        for (_, length) in FILES {
            let side = side(length);
            assert!(HEADER_LENGTH + side * row_length(side) <= length);
            assert!(HEADER_LENGTH + (side + 1) * row_length(side + 1) > length);
        }
    }
}

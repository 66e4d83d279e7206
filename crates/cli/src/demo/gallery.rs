//! Decides what the demo's gallery holds: one drawing, as files from a kilobyte to a hundred megabytes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bine::prelude::*;

/// Each file: its name, and its length in bytes.
const FILES: [(&str, u64); 6] = [
    ("1-kB.bmp", 1_000),
    ("10-kB.bmp", 10_000),
    ("100-kB.bmp", 100_000),
    ("1-MB.bmp", 1_000_000),
    ("10-MB.bmp", 10_000_000),
    ("100-MB.bmp", 100_000_000),
];
/// A page shows files up to this length; longer ones are linked.
const MOST_SHOWN: u64 = 1_000_000;
/// Of the headers that `BITMAPFILEHEADER` and `BITMAPINFOHEADER` describe.
const HEADER: u64 = 54;

/// Where the gallery's files are. The folder holds `gallery/`, and that holds the files.
pub(crate) struct Gallery {
    folder: PathBuf,
}

impl Gallery {
    /// Makes the folder. The files come later, by [`fill`](Self::fill).
    pub(crate) fn open() -> io::Result<Self> {
        let folder = place().join("bine-demo");
        fs::create_dir_all(folder.join("gallery"))?;
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What draws the files that are not there yet, in a thread of its own: the server answers meanwhile.
    pub(crate) fn filler(&self) -> impl FnOnce() + use<> {
        let folder = self.folder.join("gallery");
        move || {
            let fill = move || {
                for (name, length) in FILES {
                    if length_of(&folder.join(name)) == Some(length) {
                        continue;
                    }
                    if let Err(error) = make(&folder, name, length) {
                        eprintln!("bine: warning: the gallery lacks {name}: {error}");
                        return;
                    }
                }
            };
            if let Err(error) = thread::Builder::new().name("gallery".to_owned()).spawn(fill) {
                eprintln!("bine: warning: nobody draws the gallery: {error}");
            }
        }
    }
}

/// The folder for what can be made again (XDG Base Directory Specification), else the temporary one.
fn place() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let absolute = |path: &PathBuf| path.is_absolute();
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    named.or_else(|| home().filter(absolute)).unwrap_or_else(std::env::temp_dir)
}

/// A file appears whole or not at all.
fn make(folder: &Path, name: &str, length: u64) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let made = File::create(&unfinished)
        .and_then(|file| draw(BufWriter::with_capacity(1 << 18, file), length))
        .and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if made.is_err() {
        // It may not be there; the first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    }
    made
}

fn length_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Pixels along each side of the drawing in a file of this length.
const fn side(length: u64) -> u64 {
    let mut side = 1;
    while HEADER + (side + 1) * row(side + 1) <= length {
        side += 1;
    }
    side
}

/// Bytes of a row of pixels, which is padded to a multiple of four.
const fn row(side: u64) -> u64 {
    (side * 3).next_multiple_of(4)
}

/// Writes a square bitmap and fills the file up with zeros, which readers of bitmaps pass over.
fn draw(mut out: impl Write, length: u64) -> io::Result<()> {
    let side = side(length);
    let pixels = side * row(side);
    let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    out.write_all(b"BM")?;
    for field in [length, 0, HEADER, 40, side, side] {
        out.write_all(&word(field))?;
    }
    // One plane, 24 bits a pixel; no compression.
    out.write_all(&[1, 0, 24, 0])?;
    for field in [0, pixels, 2835, 2835, 0, 0] {
        out.write_all(&word(field))?;
    }
    let mut line = vec![0; row(side) as usize];
    for y in 0..side {
        for x in 0..side {
            let at = |place: u64| (place as f32 + 0.5) / side as f32 * 2.0 - 1.0;
            line[x as usize * 3..][..3].copy_from_slice(&color(at(x), at(y)));
        }
        out.write_all(&line)?;
    }
    io::copy(&mut io::repeat(0).take(length - HEADER - pixels), &mut out)?;
    out.flush()
}

/// A hop cone from above, between -1 and 1 both ways: 8 spirals to the left and 13 to the right, as plants
/// have them. Blue, green, red.
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
        // Between the three colors, each from 0 to 255.
        (leaf + (ground - leaf) * paper) as u8
    };
    [mix(24.0, 120.0, 220.0), mix(52.0, 222.0, 242.0), mix(20.0, 190.0, 233.0)]
}

/// The files, as pictures or as links.
#[page("/gallery")]
pub(crate) async fn gallery(gallery: State<Gallery>) -> impl Respond {
    let folder = gallery.folder.join("gallery");
    let files = FILES.map(|(name, length)| Shown {
        name,
        length,
        is_there: length_of(&folder.join(name)) == Some(length),
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
struct Shown {
    name: &'static str,
    length: u64,
    is_there: bool,
}

fn card(file: Shown) -> impl Html<Flow> {
    let Shown { name, length, is_there } = file;
    let side = side(length);
    let address = format!("/gallery/{name}");
    let picture = (length <= MOST_SHOWN && is_there).then(|| address.clone());
    html! {
        <a class="card" href={address}>
            {match picture {
                Some(source) => { <img src={source} alt="A hop cone from above, drawn by this server" width={side} height={side} loading="lazy"> }
                None => {}
            }}
            <h2>{name}</h2>
            <p>
                {side}" by "{side}" pixels"
                {if !is_there { ", being drawn" }}
            </p>
        </a>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_a_bitmap_of_exactly_its_length() {
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
    fn the_largest_square_that_fits_is_drawn() {
        for (_, length) in FILES {
            let side = side(length);
            assert!(HEADER + side * row(side) <= length);
            assert!(HEADER + (side + 1) * row(side + 1) > length);
        }
    }
}

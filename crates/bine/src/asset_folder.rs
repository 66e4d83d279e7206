//! Folders of assets: files whose URLs contain a hash, so that browsers cache them forever.
//!
//! The hash covers the whole folder and is a segment of the path: `/static/v-HASH/app.css`. A
//! relative reference in a style sheet, a module or a source map then leads to the same version of
//! its target, and no file is rewritten. A hash in the name of each file would need a rewrite of
//! all references, or would send every referenced file without a hash. The price is that a change
//! of one file changes the URL of all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bine_files::{FieldRule, Files, Root, Rules};
use bine_http::{Head, Status};
use bine_server::{Answer, Clock, HandlerContext, Incoming, Outgoing};

use crate::app_state::AppState;
use crate::linked_feature::LinkedFeature;
use crate::methods::Methods;
use crate::percent_encoding::percent_encode;
use crate::respond::{RequestSummary, Response};
use crate::route::{LocalHandler, Route, RouteContext, RouteHandler, RouteInfo, RouteKind};
use crate::service::reference::is_of_program;
use crate::visitor_message::VisitorMessage;

/// The files below a folder, with URLs that change when a file changes.
///
/// ```standalone_crate
/// use bine::prelude::*;
/// use bine::AssetFolder;
///
/// static STATIC: AssetFolder = AssetFolder::new("/static", "static");
///
/// #[page("/")]
/// async fn home() -> impl Page {
///     html!(<img src={asset!(STATIC, "logo.png")} alt="A boat">)
/// }
///
/// let app = App::new().asset_folder(&STATIC).page(home);
/// # drop(app);
/// ```
///
/// | path | content | `Cache-Control` |
/// |---|---|---|
/// | `/static/v-HASH/logo.png`, as [`asset!`](crate::asset!) writes it | the file | `public, max-age=31536000, immutable`; in development `no-cache` |
/// | the same with another hash, as on a page of an earlier version | the current file | `no-cache` |
/// | `/static/logo.png` | the file | `no-cache` |
///
/// The server reads the folder once, when it starts, so replace files before a restart. In
/// development a changed file is seen by the next request. Conditions, ranges and compressed files
/// work as for [`App::files`](crate::App::files). Hidden files, and files outside the folder that a
/// link leads to, are not served. [`bundled`](Self::bundled) makes the files part of the program.
#[derive(Debug)]
pub struct AssetFolder {
    path: &'static str,
    source: AssetSource,
    index: OnceLock<Index>,
}

/// Where the files are.
#[derive(Clone, Copy, Debug)]
enum AssetSource {
    Folder(&'static str),
    Program(BundledFiles),
}

/// The names of files, and their contents.
type BundledFiles = &'static [(&'static str, &'static [u8])];

/// The state of a folder when the program started.
#[derive(Debug)]
struct Index {
    /// The folder, unless the files are part of the program.
    root: Option<Arc<Root>>,
    /// The first segment of the hashed paths.
    version: String,
    /// The URL of each file, by its name.
    urls: HashMap<Box<str>, Box<str>>,
}

/// A file that `asset!` names.
#[derive(Debug)]
pub struct NamedAsset {
    /// Its folder.
    pub folder: &'static AssetFolder,
    /// Its name in the folder.
    pub name: &'static str,
    /// The module that names it.
    pub module: &'static str,
    /// The source file that names it.
    pub file: &'static str,
    /// The line of that file.
    pub line: u32,
}

inventory::collect!(NamedAsset);

/// The URL of a file in an [`AssetFolder`], for `src`, `href` and similar attributes:
/// `asset!(STATIC, "css/app.css")`.
///
/// The program does not start if the folder has no such file, or if the program does not serve the
/// folder.
#[macro_export]
macro_rules! asset {
    ($folder:path, $name:literal $(,)?) => {{
        $crate::__private::submit! {
            $crate::__private::NamedAsset {
                folder: &$folder,
                name: $name,
                module: module_path!(),
                file: file!(),
                line: line!(),
            }
        }
        $crate::AssetFolder::url(&$folder, $name)
    }};
}

impl AssetFolder {
    /// Describes the files below `folder`, to be served below `path`. A relative folder is below
    /// the one where the program is started. Nothing is read before the program starts.
    pub const fn new(path: &'static str, folder: &'static str) -> Self {
        Self { path, source: AssetSource::Folder(folder), index: OnceLock::new() }
    }

    /// Describes files that are part of the program, to be served below `path`:
    /// `AssetFolder::bundled("/static", bundled_files!("static"))`. They need no folder where the
    /// program runs. Ranges of such a file are not served.
    pub const fn bundled(path: &'static str, files: BundledFiles) -> Self {
        Self { path, source: AssetSource::Program(files), index: OnceLock::new() }
    }

    /// The URL of a file whose name is known only at run time. It has no hash if the folder has no
    /// such file or if no program has started with it.
    ///
    /// For a literal name use [`asset!`](crate::asset!), which checks it at the start.
    pub fn url(&'static self, name: &str) -> Cow<'static, str> {
        match self.index.get().and_then(|index| index.urls.get(name)) {
            Some(url) => Cow::Borrowed(url),
            None => format!("{}/{}", self.path, percent_encode_path(name)).into(),
        }
    }

    /// Reads the folder, unless an earlier program of this process has read it.
    fn load(&self) -> Result<&Index, String> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let is_path = self.path.starts_with('/') && !self.path.ends_with('/');
        if !is_path || self.path.contains(['{', '}']) {
            return Err(format!(
                "`AssetFolder::new({:?}, ..)` needs a path that begins with a slash and ends with a name, such as \"/static\"",
                self.path
            ));
        }
        let mut hashes = Vec::new();
        let root = match self.source {
            AssetSource::Folder(folder) => {
                let root = hash_folder(folder, &mut hashes).map_err(|error| {
                    format!("the assets in the folder {folder} cannot be read: {error}")
                })?;
                Some(Arc::new(root))
            }
            AssetSource::Program(files) => {
                hashes.extend(files.iter().map(|(name, content)| {
                    let mut hasher = DefaultHasher::new();
                    hasher.write(content);
                    ((*name).to_owned(), hasher.finish())
                }));
                None
            }
        };
        hashes.sort_unstable();
        let version = version(&hashes);
        let url = |(name, _): (String, u64)| {
            let url = format!("{}/{version}/{}", self.path, percent_encode_path(&name));
            (name.into(), url.into())
        };
        let urls = hashes.into_iter().map(url).collect();
        Ok(self.index.get_or_init(|| Index { root, version, urls }))
    }

    /// The place of the files, for messages.
    const fn place(&self) -> &'static str {
        match self.source {
            AssetSource::Folder(folder) => folder,
            AssetSource::Program(_) => "compiled into the program",
        }
    }
}

/// Adds the name and the hash of each file.
fn hash_folder(folder: &str, hashes: &mut Vec<(String, u64)>) -> io::Result<Root> {
    let root = Root::open(Path::new(folder))?;
    root.walk(&mut |path, file| {
        hashes.push((path[1..].to_owned(), hash(file)?));
        Ok(())
    })?;
    Ok(root)
}

/// The segment that depends on the names and the contents of all files.
fn version(hashes: &[(String, u64)]) -> String {
    let mut hasher = DefaultHasher::new();
    for (name, hash) in hashes {
        hasher.write(name.as_bytes());
        // A name has no zero, so no two folders give the same bytes.
        hasher.write_u8(0);
        hasher.write_u64(*hash);
    }
    format!("v-{:016x}", hasher.finish())
}

/// The hash of a file's content.
fn hash(mut file: File) -> io::Result<u64> {
    let (mut hasher, mut buffer) = (DefaultHasher::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(length) => hasher.write(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn percent_encode_path(name: &str) -> String {
    name.split('/').map(percent_encode).collect::<Vec<_>>().join("/")
}

/// Creates the routes of the program's folders, after a check of all files that its own crates
/// name. `functions`: the paths of the functions that render pages.
///
/// # Errors
///
/// Returns a message that names the place and the correction.
pub(crate) fn routes(
    folders: &[&'static AssetFolder],
    functions: &[&str],
) -> Result<Vec<Route>, String> {
    for folder in folders {
        folder.load()?;
    }
    let mut all: Vec<_> = inventory::iter::<NamedAsset>.into_iter().collect();
    // The order of the linker is arbitrary.
    all.sort_unstable_by_key(|named| (named.file, named.line, named.name));
    for named in all {
        let NamedAsset { folder, name, module, file, line } = named;
        let is_served = folders.iter().any(|own| std::ptr::eq(*own, *folder));
        let path = folder.place();
        if !is_served {
            if !LinkedFeature::has_many_programs() && is_of_program(functions, module) {
                return Err(format!(
                    "{file}:{line} names the asset {name:?} of the folder {path}, which the program does not serve; add `.asset_folder(..)` to the app"
                ));
            }
        } else if !folder.load()?.urls.contains_key(*name) {
            return Err(format!(
                "{file}:{line} names the asset {name:?}, and the folder {path} has no such file; add the file or correct the name"
            ));
        }
    }
    folders.iter().map(|folder| folder.route()).collect()
}

impl AssetFolder {
    fn route(&'static self) -> Result<Route, String> {
        self.load()?;
        // The leak is bounded: a program has few folders, for its whole life.
        let pattern = format!("{}/{{name..}}", self.path).leak();
        let info = RouteInfo { kind: RouteKind::Asset, ..RouteInfo::default() };
        Ok(Route::new(Methods::GET, pattern, self.path, SharedFolder(self)).info(info))
    }
}

struct SharedFolder(&'static AssetFolder);

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const REVALIDATED: &str = "no-cache";

/// One thread's view of a folder.
struct LocalFolder {
    folder: &'static AssetFolder,
    index: &'static Index,
    /// The files at the paths with the current hash, and at all other paths; `None` for files that
    /// are part of the program.
    files: Option<[Files; 2]>,
    clock: Rc<Clock>,
    app: Arc<AppState>,
}

impl RouteHandler for SharedFolder {
    fn local(
        &self,
        handler_context: &HandlerContext,
        context: &RouteContext,
    ) -> Box<dyn LocalHandler> {
        let folder = self.0;
        let index = folder.load().expect("the folder was read when its route was created");
        let files = |root: &Arc<Root>, cache_control: &str| {
            let field = FieldRule::new("**", "Cache-Control", cache_control);
            let fields = vec![field.expect("a valid field")];
            let rules = Rules { index: Vec::new(), fields, ..Rules::default() };
            Files::new(Arc::clone(root), Arc::new(rules))
        };
        Box::new(LocalFolder {
            folder,
            index,
            files: index
                .root
                .as_ref()
                .map(|root| [IMMUTABLE, REVALIDATED].map(|value| files(root, value))),
            clock: Rc::clone(&handler_context.clock),
            app: Arc::clone(&context.app),
        })
    }
}

impl LocalHandler for LocalFolder {
    fn call(&mut self, incoming: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = incoming.head.path();
        let path = path.strip_prefix(self.folder.path).unwrap_or_default();
        let (version, rest) = split_version(path);
        // In development the folder changes while its hash stays.
        let is_immutable =
            version == Some(&*self.index.version) && !self.app.templates.shows_causes();
        let answer = match &mut self.files {
            Some([hashed, others]) => {
                let files = if is_immutable { hashed } else { others };
                files.respond(rest, incoming, &self.clock, out)
            }
            None => None,
        };
        answer.unwrap_or_else(|| {
            let response = self.folder.bundled_response(rest, is_immutable, &incoming.head);
            let missing = || Response::told(Status::NOT_FOUND, VisitorMessage::NothingHere {});
            let asked = RequestSummary::by(incoming);
            let templates = &self.app.templates;
            response.unwrap_or_else(missing).answer(asked, &self.clock, templates, out)
        })
    }
}

impl AssetFolder {
    /// A file that is part of the program, or 304 if the client has it (RFC 9110 section 13).
    fn bundled_response(
        &self,
        path: &str,
        is_immutable: bool,
        head: &Head<'_>,
    ) -> Option<Response> {
        let AssetSource::Program(files) = self.source else { return None };
        let name = path.strip_prefix('/')?;
        let (name, content) = files.iter().find(|(own, _)| *own == name)?;
        // The version changes with each file.
        let tag = format!("\"{}\"", self.index.get()?.version);
        let response = match bine_files::evaluate_etag(head, &tag) {
            Some(status) => Response::status(status),
            None => Response::bytes(bine_files::media_type(name), *content),
        };
        let kept = if is_immutable { IMMUTABLE } else { REVALIDATED };
        Some(response.with_header("Cache-Control", kept).with_header("ETag", tag))
    }
}

/// Separates the version in front of a path below the folder, if there is one.
fn split_version(path: &str) -> (Option<&str>, &str) {
    let end = 1 + "v-".len() + 16;
    let is_version = path.starts_with("/v-")
        && path.as_bytes().get(end) == Some(&b'/')
        && path.as_bytes()[3..end].iter().all(u8::is_ascii_hexdigit);
    if is_version { (Some(&path[1..end]), &path[end..]) } else { (None, path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_versions_from_paths() {
        let hash = "v-0123456789abcdef";
        let path = |rest: &str| format!("/{hash}{rest}");
        assert_eq!(split_version(&path("/a/b.css")), (Some(hash), "/a/b.css"));
        for other in ["/a.css", "/v-1/a.css", "/v-0123456789abcdeg/a", "/", "", "/v-"] {
            assert_eq!(split_version(other), (None, other));
        }
        // Without a name, and with a letter of several bytes.
        for other in [path(""), path("x/a.css"), "/v-0123456789abcde\u{e4}/a".to_owned()] {
            assert_eq!(split_version(&other), (None, &*other));
        }
    }
}

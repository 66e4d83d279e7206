//! The start script of a site while the server runs: its current version, and the change to a new one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bine_log as log;

use super::dispatcher::Dispatcher;
use super::paths::FilterPaths;
use super::program::{ProgramSource, StartFailure, StartProgram};
use crate::access_guard::{AccessGuard, DeclaredRules};
use crate::listing::Listed;
use crate::methods::Methods;
use crate::scripts::generation::START;

/// The start script of a site.
pub(in crate::scripts) struct StartScript {
    /// Different for each script of the process.
    pub(super) id: u64,
    folder: PathBuf,
    /// The number of the current version.
    number: AtomicU64,
    current: Mutex<Arc<StartProgram>>,
    /// Why the files as they are now cannot be used. Locked while they are checked.
    failure: Mutex<Option<Box<StartFailure>>>,
    /// Decides about paths; empty in a program that started without rules.
    guard: OnceLock<Arc<dyn AccessGuard>>,
    /// Runs the scheduler, if the script had one at the start.
    dispatcher: OnceLock<Arc<Dispatcher>>,
}

impl StartScript {
    /// Runs the script in the folder of a site; `None`: there is no such file.
    ///
    /// # Errors
    ///
    /// The script cannot be compiled, or it fails: file, line, column, message and excerpt.
    pub(in crate::scripts) fn open(folder: &Path) -> Result<Option<Arc<Self>>, String> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !folder.join(START).is_file() {
            return Ok(None);
        }
        let program = StartProgram::new(1, folder).map_err(|failure| failure.message)?;
        Ok(Some(Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            folder: folder.to_owned(),
            number: AtomicU64::new(1),
            current: Mutex::new(Arc::new(program)),
            failure: Mutex::default(),
            guard: OnceLock::new(),
            dispatcher: OnceLock::new(),
        })))
    }

    /// The rules that it declares, if there are some.
    pub(in crate::scripts) fn rules(&self) -> Option<Arc<DeclaredRules>> {
        let rules = Arc::clone(&self.current().rules);
        (!rules.is_empty()).then_some(rules)
    }

    /// Adds its filters to the list of routes.
    pub(in crate::scripts) fn list(&self, listed: &mut Vec<Listed>) {
        let current = self.current();
        for pattern in current.filters.iter().flat_map(FilterPaths::sources) {
            listed.push(Listed::new(Methods::ALL, pattern, "filter", START));
        }
    }

    /// Passes its rules to the guard of the program.
    ///
    /// # Errors
    ///
    /// The guard rejects them.
    pub(in crate::scripts) fn use_guard(
        &self,
        guard: Option<&Arc<dyn AccessGuard>>,
    ) -> Result<(), String> {
        let Some(guard) = guard else { return Ok(()) };
        // The program starts once, so the cell is empty.
        let _ = self.guard.set(Arc::clone(guard));
        guard.declare(&self.current().rules)
    }

    /// Sets what runs its scheduler: `places` requests at one time, unless the script names a different
    /// number, and `queue` that wait. `None`: the script has no scheduler.
    pub(in crate::scripts) fn schedule(
        self: &Arc<Self>,
        places: usize,
        queue: usize,
    ) -> Option<Arc<Dispatcher>> {
        let options = self.current().scheduler?;
        let script: Weak<dyn ProgramSource> = Arc::<Self>::downgrade(self);
        let own = Dispatcher::new(script, options.places.unwrap_or(places), queue);
        let _ = self.dispatcher.set(Arc::clone(&own));
        Some(own)
    }

    /// The number of the current version.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Whether a file of the site is a module of the script, which is never served.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.current().generation.files().any(|file| file == path)
    }

    /// Checks the files as they are now, without a change of the current version.
    ///
    /// # Errors
    ///
    /// They cannot be used.
    pub(in crate::scripts) fn check(&self) -> Result<(), String> {
        if !self.current().generation.is_outdated() {
            return Ok(());
        }
        let next = StartProgram::new(0, &self.folder).map_err(|failure| failure.message)?;
        self.check_rules(&next)
    }

    /// Uses changed files. An invalid version is reported, and the previous one stays.
    pub(in crate::scripts) fn check_files(&self) {
        let mut known = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_outdated = match &*known {
            Some(failure) => failure.is_outdated(),
            None => self.current().generation.is_outdated(),
        };
        if !is_outdated {
            return;
        }
        let number = self.number() + 1;
        let next = match StartProgram::new(number, &self.folder) {
            Ok(next) => Arc::new(next),
            Err(failure) => {
                report(&failure.message);
                *known = Some(failure);
                return;
            }
        };
        let used = self.check_rules(&next).and_then(|()| match self.guard.get() {
            Some(guard) => guard.declare(&next.rules),
            None => Ok(()),
        });
        if let Err(reason) = used {
            report(&reason);
            *known = Some(Box::new(StartFailure::of_rules(reason, &next)));
            return;
        }
        if next.scheduler.is_some() && self.dispatcher.get().is_none() {
            log::warn(format_args!("{START}: its scheduler is in effect after a restart"));
        }
        *known = None;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = next;
        // A thread that finds the new number, and with it the new filters, sends its requests to the
        // new scheduler.
        if let Some(dispatcher) = self.dispatcher.get() {
            dispatcher.on_new_version();
        }
        self.number.store(number, Ordering::Release);
        log::notice(format_args!("{START} has changed and was loaded again"));
    }

    /// Without an effect of the rule, a path would stay open.
    fn check_rules(&self, next: &StartProgram) -> Result<(), String> {
        if next.rules.is_empty() || self.guard.get().is_some() {
            return Ok(());
        }
        Err(format!("{START}: the server started without rules; restart it to use these"))
    }
}

impl ProgramSource for StartScript {
    fn current(&self) -> Arc<StartProgram> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn report(reason: &str) {
    log::error(format_args!("{START} cannot be loaded, and its previous version stays:\n{reason}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::testing::Folder;

    const RULE: &str = "import { rule } from \"bine:start\";\nrule(\"/a\", \"read\", \"users\");\n";

    #[test]
    fn keeps_the_previous_version_of_a_file_that_cannot_be_used() {
        let folder = Folder::with(&[("start.ts", "export {};\n")]);
        let script = StartScript::open(folder.path()).unwrap().unwrap();
        assert_eq!((script.number(), script.check()), (1, Ok(())));
        for (text, expected) in [
            ("const a = ;", "start.ts:1:11: "),
            (" \n", "start.ts:1:1: the file is empty: "),
            ("throw new Error(\"no luck\");", "start.ts:1:11: Error: no luck\n  1 | throw"),
            (RULE, "start.ts: the server started without rules; restart it"),
        ] {
            folder.write("start.ts", text);
            let error = script.check().unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
            script.check_files();
            assert_eq!(script.number(), 1, "{text}");
            assert!(script.rules().is_none());
        }
        folder.write("start.ts", "export const one = 1;\n");
        assert_eq!(script.check(), Ok(()));
        script.check_files();
        assert_eq!(script.number(), 2);
        script.check_files();
        assert_eq!(script.number(), 2);
    }

    #[test]
    fn opens_folders_without_a_script() {
        let folder = Folder::with(&[("index.tsx", "")]);
        assert!(StartScript::open(folder.path()).unwrap().is_none());
        assert!(StartScript::open(std::path::Path::new("/no/such/folder")).unwrap().is_none());
    }
}

//! Decides what was chosen for a run, and where each choice came from: a flag wins over the
//! environment, that over the configuration file, that over the default.

mod channels;
mod file;
mod keys;
mod show;
mod values;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bine_server::{Address, Listen, Settings, User, inherited};
use bine_store::Sync;

use crate::acme_choices::AcmeChoices;
use crate::health::HealthChoices;
use crate::hosts::HostChoice;
use crate::live::RenderLimits;
use crate::security::HeaderChoices;
use crate::sites::{HostPattern, SiteChoices};
use crate::tables::USUAL_DATA;

use channels::ChannelChoices;
use file::{Contents, Fault, SiteTable};
use keys::{KEYS, Key, Set};

/// What was chosen for a run.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// How to serve.
    pub(crate) settings: Settings,
    /// What goes into which log.
    pub(crate) logs: Logs,
    /// `on`, `off`, `acme` or `self-signed`.
    pub(crate) tls: String,
    /// Errors are shown with their causes; `None`: as the program says.
    pub(crate) development: Option<bool>,
    /// Whom to ask for certificates.
    pub(crate) acme: AcmeChoices,
    /// Who comes without TLS is sent to where it is spoken; `None`: if the certificate is public.
    pub(crate) redirects_to_https: Option<bool>,
    /// For how many seconds a browser shall come by TLS alone; `None`: if the certificate is public, for
    /// [`HSTS`](crate::security::HSTS).
    pub(crate) hsts: Option<u32>,
    /// Security headers of responses.
    pub(crate) headers: HeaderChoices,
    /// Hosts that the server answers for.
    pub(crate) hosts: HostChoice,
    /// For each address: it says itself whether TLS is spoken there.
    says_tls: Vec<bool>,
    /// Where tables and keys of TLS are kept; `None`: nowhere.
    pub(crate) data: Option<PathBuf>,
    /// Nothing is to be kept, whatever the program's wish.
    pub(crate) forgets: bool,
    /// When a change of tables is acknowledged.
    pub(crate) sync: Sync,
    /// Seconds for which a session may be unused; `None`: as the program says.
    pub(crate) session_idle: Option<u32>,
    /// Seconds for which a session lasts at most; `None`: as the program says.
    pub(crate) session_absolute: Option<u32>,
    /// How many renders of live pages may run and wait.
    pub(crate) live: RenderLimits,
    /// Who may reach channels, beside those whom the program lets.
    pub(crate) channels: ChannelChoices,
    /// Whom to become when the addresses are open.
    pub(crate) user: Option<User>,
    /// Where figures are told; `None`: nowhere.
    pub(crate) metrics: Option<Listen>,
    /// What is asked of the program's health.
    pub(crate) health: HealthChoices,
    /// Where `bine reload` finds this server.
    pub(crate) control: Control,
    /// The site of every host that has none of its own.
    pub(crate) site: SiteChoices,
    /// Sites of their own, with the hosts they are for.
    pub(crate) sites: Vec<(Vec<HostPattern>, SiteChoices)>,
    /// `--help` was asked for.
    pub(crate) wants_help: bool,
    /// The file that was read.
    pub(crate) file: Option<PathBuf>,
    /// Near misses among the environment's names.
    pub(crate) doubts: Vec<String>,
    given: Vec<Given>,
    given_to_sites: Vec<(SiteTable, Vec<Given>)>,
}

/// What goes into which log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Logs {
    /// Where requests are logged; `None`: nowhere.
    pub(crate) access: Option<PathBuf>,
    /// How a line of it looks.
    pub(crate) format: String,
    /// What happens when its writer falls behind: `drop` or `wait`.
    pub(crate) when_full: String,
    /// Where the server tells of itself; `None`: on standard error.
    pub(crate) error: Option<PathBuf>,
    /// The least of what it tells.
    pub(crate) level: String,
}

/// Where a server can be told to reload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Control {
    /// In the run folder, if there is one.
    #[default]
    Usual,
    /// Nowhere.
    Off,
    /// A socket at this path.
    At(PathBuf),
}

/// A key with its values.
#[derive(Clone, Debug)]
struct Given {
    key: &'static Key,
    origin: Origin,
    values: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Value {
    text: String,
    /// In the configuration file, from 1; 0 for values from elsewhere.
    line: usize,
}

/// Where a value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Origin {
    Default,
    File,
    Environment,
    Flag,
}

/// From where a configuration is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The command line, without the program's name.
    pub(crate) arguments: Vec<OsString>,
    /// Names and values.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Read if it exists and no file is named: `bine.toml`.
    pub(crate) usual_file: Option<PathBuf>,
    /// The data folder, if no other is said.
    pub(crate) usual_data: Option<PathBuf>,
}

/// No configuration is longer; more is a mistake, like a device or a log.
const LONGEST: u64 = 1 << 20;
/// The environment's name of a key begins so.
const PREFIX: &str = "BINE_";

impl Sources {
    /// The sources of this process, with these arguments.
    pub(crate) fn of_process(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: std::env::vars_os().collect(),
            usual_file: Some("bine.toml".into()),
            usual_data: None,
        }
    }

    /// Reads them all.
    ///
    /// # Errors
    ///
    /// What is wrong, where, and what would be right.
    pub(crate) fn read(&self) -> Result<Configuration, String> {
        let flags = Flags::read(&self.arguments)?;
        if flags.wants_help {
            return Ok(Configuration { wants_help: true, ..Configuration::default() });
        }
        let file = self.file(&flags);
        let contents = match &file {
            Some(path) => read_file(path)?,
            None => Contents::default(),
        };
        self.assemble(flags, file, contents)
    }

    /// Where the server of this configuration can be told something, and its data folder, which may be
    /// the place. As far as they can be known: a file that is wrong is for the server to complain of.
    ///
    /// # Errors
    ///
    /// A wrong command line or environment.
    pub(crate) fn control(&self) -> Result<Option<(Control, Option<PathBuf>)>, String> {
        let flags = Flags::read(&self.arguments)?;
        if flags.wants_help {
            return Ok(None);
        }
        let file = self.file(&flags);
        let values = match &file {
            Some(path) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                let bytes = read_bytes(path).unwrap_or_default();
                file::made_out(&bytes, folder, &["control", "data"])
            }
            None => Vec::new(),
        };
        let known = self.assemble(flags, file, Contents { values, sites: Vec::new() })?;
        Ok(Some((known.control, known.data)))
    }

    fn assemble(
        &self,
        flags: Flags,
        file: Option<PathBuf>,
        contents: Contents,
    ) -> Result<Configuration, String> {
        let (environment, doubts) = self.read_environment()?;
        let mut given: Vec<Given> = KEYS.iter().map(Given::by_default).collect();
        let Contents { values, sites } = contents;
        for layer in values.into_iter().chain(environment).chain(flags.given) {
            overlay(&mut given, layer);
        }
        let mut own = Configuration { file, doubts, ..Configuration::default() };
        own.choose(given, sites)?;
        if own.data.is_none() && !own.forgets {
            own.data.clone_from(&self.usual_data);
            if own.data.is_none() && own.channels.are_some() {
                own.data = Some(USUAL_DATA.into());
            }
        }
        Ok(own)
    }

    fn file(&self, flags: &Flags) -> Option<PathBuf> {
        let named = self.environment.iter().find(|(name, _)| name == "BINE_CONFIG");
        let usual = self.usual_file.as_ref().filter(|path| path.exists());
        flags.config.clone().or_else(|| named.map(|(_, path)| path.into())).or(usual.cloned())
    }

    fn read_environment(&self) -> Result<(Vec<Given>, Vec<String>), String> {
        let (mut given, mut doubts) = (Vec::new(), Vec::new());
        for (name, value) in &self.environment {
            let Some(word) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
                continue;
            };
            let word = word.to_ascii_lowercase().replace('_', "-");
            let Some(key) = keys::find(&word) else {
                // Others may use the prefix too, so that a name from far away is theirs.
                if let Some(near) = keys::nearest_key(&word).filter(|_| word != "config") {
                    let near = environment_name(near);
                    doubts.push(format!(
                        "{} in the environment is no setting; did you mean {near}?",
                        name.display()
                    ));
                }
                continue;
            };
            let value =
                value.to_str().ok_or_else(|| format!("{}: not UTF-8 text", name.display()))?;
            let values = key.split(value).map(|text| Value { text: text.to_owned(), line: 0 });
            given.push(Given { key, origin: Origin::Environment, values: values.collect() });
        }
        Ok((given, doubts))
    }
}

/// What the command line says.
#[derive(Default)]
struct Flags {
    config: Option<PathBuf>,
    wants_help: bool,
    given: Vec<Given>,
}

impl Flags {
    fn read(arguments: &[OsString]) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                    flags.wants_help = true;
                    return Ok(flags);
                }
                lexopt::Arg::Long("config") => {
                    let path = parser.value().map_err(|error| error.to_string())?;
                    flags.config = Some(path.into());
                }
                lexopt::Arg::Long(name) => {
                    let name = name.to_owned();
                    let known = keys::find(&name);
                    let key = known.ok_or_else(|| keys::unknown("option `--", &name))?;
                    let value = parser.value().map_err(|error| error.to_string())?;
                    let text =
                        value.into_string().map_err(|_| format!("--{name}: not UTF-8 text"))?;
                    if name == "scheduler" && text == "help" {
                        flags.wants_help = true;
                        return Ok(flags);
                    }
                    flags.add(key, text);
                }
                other => return Err(other.unexpected().to_string()),
            }
        }
        Ok(flags)
    }

    /// A flag that is repeated makes a list longer; of other keys the last one counts.
    fn add(&mut self, key: &'static Key, text: String) {
        let value = Value { text, line: 0 };
        match self.given.iter_mut().find(|given| std::ptr::eq(given.key, key)) {
            Some(given) if key.is_list() => given.values.push(value),
            Some(given) => given.values = vec![value],
            None => self.given.push(Given { key, origin: Origin::Flag, values: vec![value] }),
        }
    }
}

impl Configuration {
    fn choose(&mut self, given: Vec<Given>, tables: Vec<SiteTable>) -> Result<(), String> {
        for each in &given {
            self.apply(each)?;
        }
        let listens_by_default =
            given.iter().any(|each| each.key.name == "listen" && each.origin == Origin::Default);
        let passed: Vec<Listen> = inherited().into_iter().map(Listen::on).collect();
        if listens_by_default && !passed.is_empty() {
            self.settings.listeners = passed;
            self.says_tls.clear();
        }
        if self.tls != "off" {
            let said = self.says_tls.iter().copied().chain(std::iter::repeat(false));
            for (listen, says_tls) in self.settings.listeners.iter_mut().zip(said) {
                // Who comes through the file system is on this machine already.
                listen.tls |= !says_tls && !matches!(listen.address, Address::Unix(_));
            }
        }
        if self.redirects_to_https == Some(true)
            && !self.settings.listeners.iter().any(|listen| listen.tls)
        {
            return Err("https-redirect: no address speaks TLS; see `tls`".to_owned());
        }
        for table in tables {
            let mut own = given.clone();
            table.values.iter().for_each(|layer| overlay(&mut own, layer.clone()));
            let mut site = SiteChoices::default();
            for each in &own {
                if let Set::Site(set) = each.key.set {
                    self.each_value(each, |text| set(&mut site, text))?;
                }
            }
            let wrong = |reason: String| self.wrong_line(table.line, &reason);
            if table.hosts.is_empty() {
                return Err(wrong("a site says for whom it is: hosts = [\"example.org\"]".into()));
            }
            let mut hosts = Vec::new();
            for (host, line) in &table.hosts {
                let pattern = HostPattern::parse(host)
                    .map_err(|reason| self.wrong_line(*line, &format!("hosts: {reason}")))?;
                let others = self.sites.iter().flat_map(|(hosts, _)| hosts).chain(&hosts);
                if others.into_iter().any(|other| *other == pattern) {
                    let reason = format!("hosts: `{host}` has a site already");
                    return Err(self.wrong_line(*line, &reason));
                }
                hosts.push(pattern);
            }
            self.sites.push((hosts, site));
            self.given_to_sites.push((table, own));
        }
        self.given = given;
        Ok(())
    }

    fn apply(&mut self, given: &Given) -> Result<(), String> {
        match given.key.set {
            Set::Server(set) => {
                let mut own = std::mem::take(self);
                let applied = own.each_value_mut(given, set);
                *self = own;
                applied
            }
            Set::Site(set) => {
                let mut site = std::mem::take(&mut self.site);
                let applied = self.each_value(given, |text| set(&mut site, text));
                self.site = site;
                applied
            }
        }
    }

    fn each_value_mut(
        &mut self,
        given: &Given,
        set: fn(&mut Self, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for value in &given.values {
            set(self, &value.text).map_err(|reason| self.wrong(given, value, &reason))?;
        }
        Ok(())
    }

    fn each_value(
        &self,
        given: &Given,
        mut set: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        for value in &given.values {
            set(&value.text).map_err(|reason| self.wrong(given, value, &reason))?;
        }
        Ok(())
    }

    fn wrong(&self, given: &Given, value: &Value, reason: &str) -> String {
        let name = given.key.name;
        match given.origin {
            Origin::File => self.wrong_line(value.line, &format!("{name}: {reason}")),
            Origin::Environment => format!("{}={}: {reason}", environment_name(name), value.text),
            Origin::Flag | Origin::Default => format!("--{name} {}: {reason}", value.text),
        }
    }

    fn wrong_line(&self, line: usize, reason: &str) -> String {
        let file = self.file.as_deref().unwrap_or(Path::new("bine.toml"));
        format!("{}:{line}: {reason}", file.display())
    }

    /// Whether any site has a folder.
    pub(crate) fn names_files(&self) -> bool {
        let mut sites = self.sites.iter().map(|(_, site)| site).chain([&self.site]);
        sites.any(|site| site.root.is_some())
    }

    /// What differs in `newer` and cannot change while a server runs.
    pub(crate) fn needs_restart(&self, newer: &Self) -> Vec<&'static str> {
        let texts = |given: &Given| -> Vec<String> {
            given.values.iter().map(|value| value.text.clone()).collect()
        };
        let pairs = self.given.iter().zip(&newer.given);
        let changed = pairs.filter(|(old, new)| old.key.is_fixed && texts(old) != texts(new));
        changed.map(|(old, _)| old.key.name).collect()
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            logs: Logs::default(),
            tls: String::new(),
            development: None,
            acme: AcmeChoices::default(),
            redirects_to_https: None,
            hsts: None,
            headers: HeaderChoices::default(),
            hosts: HostChoice::default(),
            says_tls: Vec::new(),
            data: None,
            forgets: false,
            live: RenderLimits::default(),
            channels: ChannelChoices::default(),
            sync: Sync::Commit,
            session_idle: None,
            session_absolute: None,
            user: None,
            metrics: None,
            health: HealthChoices { is_told: true, is_logged: false },
            control: Control::Usual,
            site: SiteChoices::default(),
            sites: Vec::new(),
            wants_help: false,
            file: None,
            doubts: Vec::new(),
            given: Vec::new(),
            given_to_sites: Vec::new(),
        }
    }
}

impl Given {
    fn by_default(key: &'static Key) -> Self {
        let values = key.default.iter().map(|text| Value { text: (*text).to_owned(), line: 0 });
        Self { key, origin: Origin::Default, values: values.collect() }
    }
}

/// `layer` takes the place of what was given for its key before.
fn overlay(given: &mut [Given], layer: Given) {
    if let Some(own) = given.iter_mut().find(|own| std::ptr::eq(own.key, layer.key)) {
        *own = layer;
    }
}

fn environment_name(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('-', "_"))
}

/// The whole file, or enough of it to see that it is too long.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Contents, String> {
    let bytes =
        read_bytes(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Contents::parse(&bytes, folder)
        .map_err(|Fault { line, reason }| format!("{}:{line}: {reason}", path.display()))
}

#[cfg(test)]
mod tests;

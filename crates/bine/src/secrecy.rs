//! Decides which certificates a server shows to whom, and where its secrets are kept.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bine_http::Date;
use bine_pipeline::log;
use bine_pipeline::tls::{Certificate, Tickets, Tls};

use crate::configuration::Configuration;
use crate::sites::{SiteChoices, place};

/// What stays the same however often a configuration is read again.
#[derive(Default)]
pub(crate) struct Secrets {
    tickets: OnceLock<Arc<Tickets>>,
    self_signed: OnceLock<Certificate>,
}

/// Keys of tickets, in the data folder.
const TICKETS: &str = "tls-tickets";
/// A certificate that was made here, with its key, in the data folder.
const SELF_SIGNED: &str = "self-signed.pem";

impl Secrets {
    /// What a server shows under `configuration`; `None` if it speaks TLS nowhere.
    ///
    /// # Errors
    ///
    /// What is missing or wrong, by the name of its file.
    pub(crate) fn of(&self, configuration: &Configuration) -> Result<Option<Arc<Tls>>, String> {
        if !configuration.settings.listeners.iter().any(|listen| listen.tls) {
            return Ok(None);
        }
        let data = configuration.data.as_deref();
        if let Some(folder) = data {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| {
                format!("cannot make the data folder {}: {error}", folder.display())
            })?;
        }
        let sites = [&configuration.site]
            .into_iter()
            .chain(configuration.sites.iter().map(|(_, site)| site));
        let certificates: Vec<Option<Certificate>> =
            sites.map(|site| self.certificate(site, configuration)).collect::<Result<_, _>>()?;
        if certificates.iter().all(Option::is_none) {
            return Err("TLS needs a certificate: set `certificate` and `certificate-key`, or `tls = \"self-signed\"` for development".to_owned());
        }
        let hosts = configuration.sites.iter().enumerate();
        let hosts: Vec<_> = hosts
            .flat_map(|(number, (hosts, _))| {
                hosts.iter().map(move |host| (host.clone(), number + 1))
            })
            .collect();
        let choice =
            move |host: Option<&str>| certificates.get(place(&hosts, host)).cloned().flatten();
        Ok(Some(Arc::new(Tls::new(Box::new(choice), self.tickets(data)?))))
    }

    /// What a site shows. `None`: it has nothing, and who asks for it is refused.
    fn certificate(
        &self,
        site: &SiteChoices,
        configuration: &Configuration,
    ) -> Result<Option<Certificate>, String> {
        let (chain, key) = match (&site.certificate, &site.certificate_key) {
            (Some(chain), Some(key)) => (chain, key),
            (Some(chain), None) => {
                return Err(format!(
                    "{}: `certificate-key` must say where its key is",
                    chain.display()
                ));
            }
            (None, Some(key)) => {
                return Err(format!(
                    "{}: `certificate` must say what it is the key of",
                    key.display()
                ));
            }
            (None, None) if configuration.tls == "self-signed" => {
                return self.self_signed(configuration).map(Some);
            }
            (None, None) => return Ok(None),
        };
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        Certificate::from_pem(&read(chain)?, &read(key)?)
            .map(Some)
            .map_err(|error| format!("{}: {error}", chain.display()))
    }

    /// A certificate that nobody vouches for. One that was made before is shown again.
    fn self_signed(&self, configuration: &Configuration) -> Result<Certificate, String> {
        if let Some(made) = self.self_signed.get() {
            return Ok(made.clone());
        }
        let kept = configuration.data.as_ref().map(|folder| folder.join(SELF_SIGNED));
        let known = kept.as_ref().and_then(|path| fs::read(path).ok());
        let known = known.and_then(|pem| Certificate::from_pem(&pem, &pem).ok());
        let certificate = match known {
            Some(certificate) => certificate,
            None => {
                let pem =
                    made_up().map_err(|error| format!("cannot make a certificate: {error}"))?;
                if let Some(path) = &kept {
                    keep(path, pem.as_bytes())
                        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                }
                let made = Certificate::from_pem(pem.as_bytes(), pem.as_bytes());
                made.map_err(|error| error.to_string())?
            }
        };
        log::notice(format_args!(
            "a certificate of our own, for development; its SHA-256 is {}",
            certificate.fingerprint()
        ));
        Ok(self.self_signed.get_or_init(|| certificate).clone())
    }

    fn tickets(&self, data: Option<&Path>) -> Result<Arc<Tickets>, String> {
        if let Some(known) = self.tickets.get() {
            return Ok(Arc::clone(known));
        }
        let tickets = match data.map(|folder| folder.join(TICKETS)) {
            Some(path) => Tickets::kept(&path).map_err(|error| {
                format!("cannot keep TLS tickets in {}: {error}", path.display())
            })?,
            None => Tickets::passing(),
        };
        Ok(Arc::clone(self.tickets.get_or_init(|| Arc::new(tickets))))
    }
}

/// A certificate for this machine, good from the beginning of this year to the end of the next, and its key.
fn made_up() -> Result<String, rcgen::Error> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    // Where the system does not say its name, it is not asked for by it.
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.extend(Some(own.trim().to_owned()).filter(|name| !name.is_empty() && name.is_ascii()));
    let mut parameters = rcgen::CertificateParams::new(names)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let date = Date::at(now.map_or(0, |since| since.as_secs()));
    let year: i32 = date.as_str().get(12..16).and_then(|year| year.parse().ok()).unwrap_or(1970);
    parameters.not_before = rcgen::date_time_ymd(year, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(year + 2, 1, 1);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "Bine, self-signed");
    let key = rcgen::KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

/// Writes a file that nobody else may read, wholly or not at all.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    fs::rename(&beside, path)
}

//! Decides which certificates a server shows to whom, and where its secrets are kept.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bine_log as log;
use bine_server::tls::{Certificate, Tickets, Tls};
use bine_server::{is_disk_full, write_private};

use crate::acme::{Acme, Plan, Slot};
use crate::configuration::Configuration;
use crate::security::certificate::Facts;
use crate::self_signed::{made_up, make_folder};
use crate::sites::{SiteChoices, place};

/// What stays the same however often a configuration is read again.
#[derive(Default)]
pub(crate) struct Secrets {
    tickets: OnceLock<Arc<Tickets>>,
    self_signed: OnceLock<Certificate>,
    /// What comes from an authority by itself.
    pub(crate) acme: Arc<Acme>,
}

/// What a server shows under one configuration, and what must be done for it.
#[derive(Default)]
pub(crate) struct Shown {
    /// `None`: it speaks TLS nowhere.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Certificates to be had from an authority.
    pub(crate) plan: Option<Plan>,
    /// Of all certificates that were not made here.
    pub(crate) facts: Facts,
}

/// What is shown for a site.
enum Face {
    /// Nothing, and who asks for it is refused.
    None,
    /// And what it says, if it was not made here.
    Fixed(Certificate, Facts),
    /// Whatever the authority has given last.
    Changing(Arc<Slot>),
}

/// Keys of tickets, in the data folder.
const TICKETS: &str = "tls-tickets";
/// A certificate that was made here, with its key, in the data folder.
const SELF_SIGNED: &str = "self-signed.pem";

impl Secrets {
    /// What a server shows under `configuration`.
    ///
    /// # Errors
    ///
    /// What is missing or wrong, by the name of its file.
    pub(crate) fn of(&self, configuration: &Configuration) -> Result<Shown, String> {
        if !configuration.settings.listeners.iter().any(|listen| listen.tls) {
            return Ok(Shown::default());
        }
        let data = configuration.data.as_deref();
        if let Some(folder) = data.filter(|folder| !folder.is_dir()) {
            make_folder(folder)?;
            if let Some(user) = &configuration.user {
                // Who may not do this may not become that user either, which is told when it is tried.
                let _ = user.give(folder);
            }
        }
        let sites = [&configuration.site]
            .into_iter()
            .chain(configuration.sites.iter().map(|(_, site)| site));
        let mut faces: Vec<Face> =
            sites.map(|site| self.face(site, configuration)).collect::<Result<_, _>>()?;
        let plan = match &*configuration.tls {
            "acme" => self.plan(configuration, &mut faces)?,
            _ => None,
        };
        if faces.iter().all(|face| matches!(face, Face::None)) {
            return Err("TLS needs a certificate: set `certificate` and `certificate-key`, or `tls = \"acme\"` to have one from an authority, or `tls = \"self-signed\"` for development".to_owned());
        }
        let facts = facts(configuration, &faces);
        let hosts = configuration.sites.iter().enumerate();
        let hosts: Vec<_> = hosts
            .flat_map(|(number, (hosts, _))| {
                hosts.iter().map(move |host| (host.clone(), number + 1))
            })
            .collect();
        let choice = move |host: Option<&str>| match &faces[place(&hosts, host)] {
            Face::None => None,
            Face::Fixed(certificate, _) => Some(certificate.clone()),
            Face::Changing(slot) => Some(slot.certificate()),
        };
        let tls = Tls::new(Box::new(choice), self.tickets(data)?);
        Ok(Shown { tls: Some(Arc::new(tls)), plan, facts })
    }

    /// What is shown for a site by its own choice.
    fn face(&self, site: &SiteChoices, configuration: &Configuration) -> Result<Face, String> {
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
                return {
                    let made = self.self_signed(configuration)?;
                    Ok(Face::Fixed(made, Facts::default()))
                };
            }
            (None, None) => return Ok(Face::None),
        };
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let pem = read(chain)?;
        Certificate::from_pem(&pem, &read(key)?)
            .map(|certificate| Face::Fixed(certificate, Facts::of_pem(&pem)))
            .map_err(|error| format!("{}: {error}", chain.display()))
    }

    /// Gives every site that has no certificate of its own one from an authority.
    fn plan(
        &self,
        configuration: &Configuration,
        faces: &mut [Face],
    ) -> Result<Option<Plan>, String> {
        let data = configuration.data.as_deref().ok_or(
            "tls = \"acme\" keeps its certificates in a data folder: set `data`, like data = \"data\"",
        )?;
        if configuration.settings.listeners.iter().all(|listen| listen.tls) {
            return Err("tls = \"acme\": an authority asks without TLS, at port 80 of each host, and no address is without: add one like \"0.0.0.0:80,tls=off\" to `listen`".to_owned());
        }
        let top = &configuration.acme.hosts;
        let all = [top.iter().collect::<Vec<_>>()]
            .into_iter()
            .chain(configuration.sites.iter().map(|(hosts, _)| hosts.iter().collect()));
        let (mut places, mut wanted) = (Vec::new(), Vec::new());
        for (place, (face, hosts)) in faces.iter().zip(all).enumerate() {
            if !matches!(face, Face::None) || hosts.is_empty() {
                continue;
            }
            let exact: Vec<String> = hosts.iter().filter_map(|host| host.exact()).collect();
            if exact.is_empty() {
                return Err(format!(
                    "tls = \"acme\": no host of the site for {} can be proved, only a name like example.org can; give the site a `certificate`",
                    hosts[0]
                ));
            }
            places.push(place);
            wanted.push(exact);
        }
        if wanted.is_empty() {
            return Err("tls = \"acme\": for which hosts? Set `acme-host`, or the hosts of a [[site]] without a `certificate`".to_owned());
        }
        let (plan, slots) = self.acme.plan(&configuration.acme, data, wanted)?;
        for (place, slot) in places.into_iter().zip(slots) {
            faces[place] = Face::Changing(slot);
        }
        Ok(Some(plan))
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
                let pem = made_up(&own_names())?;
                match kept.as_ref().map(|path| (path, write_private(path, pem.as_bytes()))) {
                    Some((path, Err(error))) if is_disk_full(&error) => {
                        log::warn(format_args!(
                            "the disk is full: the next start makes another certificate ({}: {error})",
                            path.display()
                        ));
                    }
                    Some((path, Err(error))) => {
                        return Err(format!("cannot write {}: {error}", path.display()));
                    }
                    Some((_, Ok(()))) | None => {}
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

/// What all certificates together say.
fn facts(configuration: &Configuration, faces: &[Face]) -> Facts {
    let top = configuration.acme.hosts.clone();
    let sites = configuration.sites.iter().map(|(hosts, _)| hosts.clone());
    let mut all = Facts::default();
    for (face, hosts) in faces.iter().zip([top].into_iter().chain(sites)) {
        let facts = match face {
            Face::None => continue,
            Face::Fixed(_, facts) => facts.clone(),
            Face::Changing(_) => Facts::issued(hosts),
        };
        all.names.extend(facts.names);
        all.is_public |= facts.is_public;
    }
    all
}

/// The names of this machine, as far as it knows them.
fn own_names() -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    // Where the system does not say its name, it is not asked for by it.
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.extend(Some(own.trim().to_owned()).filter(|name| !name.is_empty() && name.is_ascii()));
    names
}

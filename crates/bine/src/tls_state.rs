//! TLS certificates and ticket keys: which certificate the server presents for a host, and where
//! the keys are stored.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bine_log as log;
use bine_server::tls::{Certificate, Tickets, Tls};
use bine_server::{is_disk_full, write_private};

use crate::authority::{CertificateAuthority, CertificatePlan, ChangingCertificate};
use crate::configuration::Configuration;
use crate::security::certificate::Facts;
use crate::self_signed::{create_private_folder, create_self_signed};
use crate::sites::{SiteChoices, place};

/// The keys and certificates that reloads keep.
#[derive(Default)]
pub(crate) struct TlsState {
    tickets: OnceLock<Arc<Tickets>>,
    self_signed: OnceLock<Certificate>,
    /// Issues certificates, in a program that was built with a client of authorities.
    authority: Option<Arc<dyn CertificateAuthority>>,
}

/// The TLS setup under one configuration, and the certificates to order for it.
#[derive(Default)]
pub(crate) struct TlsSetup {
    /// `None` if no address uses TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Certificates to order from an authority.
    pub(crate) plan: Option<CertificatePlan>,
    /// Facts about all certificates that are not self-signed.
    pub(crate) facts: Facts,
}

/// The certificate of a site.
enum SiteCertificate {
    /// No certificate: TLS connections for the site are rejected.
    None,
    /// A fixed certificate, with its facts unless it is self-signed.
    Fixed(Certificate, Facts),
    /// The latest certificate from the authority.
    Changing(Arc<dyn ChangingCertificate>),
}

/// The file with the ticket keys, in the data folder.
const TICKETS: &str = "tls-tickets";
/// The file with the self-signed certificate and its key, in the data folder.
const SELF_SIGNED: &str = "self-signed.pem";

impl TlsState {
    /// Creates the state of a program, with its certificate authority.
    pub(crate) fn new(authority: Option<Arc<dyn CertificateAuthority>>) -> Self {
        Self { authority, ..Self::default() }
    }

    /// Orders the certificates of this plan from now on.
    ///
    /// # Errors
    ///
    /// The thread for it cannot be created.
    pub(crate) fn pursue(&self, plan: Option<CertificatePlan>) -> Result<(), String> {
        self.authority.as_ref().map_or(Ok(()), |authority| authority.pursue(plan))
    }

    /// The authority, which answers its challenges.
    pub(crate) fn authority(&self) -> Option<&Arc<dyn CertificateAuthority>> {
        self.authority.as_ref()
    }

    /// Sets up TLS for `configuration`.
    ///
    /// # Errors
    ///
    /// Returns the file or setting that is missing or invalid.
    pub(crate) fn of(&self, configuration: &Configuration) -> Result<TlsSetup, String> {
        if !configuration.settings.listeners.iter().any(|listen| listen.tls) {
            return Ok(TlsSetup::default());
        }
        let data = configuration.data.as_deref();
        if let Some(folder) = data.filter(|folder| !folder.is_dir()) {
            create_private_folder(folder)?;
            if let Some(user) = &configuration.user {
                // Without the privilege for this, the process cannot change its user either. That
                // step reports the error.
                let _ = user.give(folder);
            }
        }
        let sites = [&configuration.site]
            .into_iter()
            .chain(configuration.sites.iter().map(|(_, site)| site));
        let mut certificates: Vec<SiteCertificate> = sites
            .map(|site| self.site_certificate(site, configuration))
            .collect::<Result<_, _>>()?;
        let plan = match &*configuration.tls {
            "acme" => self.plan(configuration, &mut certificates)?,
            _ => None,
        };
        if certificates
            .iter()
            .all(|site_certificate| matches!(site_certificate, SiteCertificate::None))
        {
            return Err("TLS needs a certificate: set `certificate` and `certificate-key`, or `tls = \"acme\"` to order one from an authority, or `tls = \"self-signed\"` for development".to_owned());
        }
        let facts = facts(configuration, &certificates);
        let hosts = configuration.sites.iter().enumerate();
        let hosts: Vec<_> = hosts
            .flat_map(|(number, (hosts, _))| {
                hosts.iter().map(move |host| (host.clone(), number + 1))
            })
            .collect();
        let choice = move |host: Option<&str>| match &certificates[place(&hosts, host)] {
            SiteCertificate::None => None,
            SiteCertificate::Fixed(certificate, _) => Some(certificate.clone()),
            SiteCertificate::Changing(slot) => Some(slot.certificate()),
        };
        let tls = Tls::new(Box::new(choice), self.tickets(data)?);
        Ok(TlsSetup { tls: Some(Arc::new(tls)), plan, facts })
    }

    /// The certificate that a site's own settings determine.
    fn site_certificate(
        &self,
        site: &SiteChoices,
        configuration: &Configuration,
    ) -> Result<SiteCertificate, String> {
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
                    "{}: set `certificate` to the file with its certificate",
                    key.display()
                ));
            }
            (None, None) if configuration.tls == "self-signed" => {
                return {
                    let made = self.self_signed(configuration)?;
                    Ok(SiteCertificate::Fixed(made, Facts::default()))
                };
            }
            (None, None) => return Ok(SiteCertificate::None),
        };
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let pem = read(chain)?;
        Certificate::from_pem(&pem, &read(key)?)
            .map(|certificate| SiteCertificate::Fixed(certificate, Facts::of_pem(&pem)))
            .map_err(|error| format!("{}: {error}", chain.display()))
    }

    /// Plans a certificate from an authority for every site without its own certificate.
    fn plan(
        &self,
        configuration: &Configuration,
        certificates: &mut [SiteCertificate],
    ) -> Result<Option<CertificatePlan>, String> {
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
        for (place, (site_certificate, hosts)) in certificates.iter().zip(all).enumerate() {
            if !matches!(site_certificate, SiteCertificate::None) || hosts.is_empty() {
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
        let authority = self.authority.as_ref().ok_or("tls = \"acme\": this program was built without ACME; enable the feature `acme` of the crate `bine`")?;
        let (plan, slots) = authority.plan(&configuration.acme, data, wanted)?;
        for (place, slot) in places.into_iter().zip(slots) {
            certificates[place] = SiteCertificate::Changing(slot);
        }
        Ok(Some(plan))
    }

    /// The self-signed certificate. An existing one is reused.
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
                let pem = create_self_signed(&own_names())?;
                match kept.as_ref().map(|path| (path, write_private(path, pem.as_bytes()))) {
                    Some((path, Err(error))) if is_disk_full(&error) => {
                        log::warn(format_args!(
                            "the disk is full: the next start creates another certificate ({}: {error})",
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
            "self-signed certificate, for development; its SHA-256 is {}",
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
                format!("cannot store TLS ticket keys in {}: {error}", path.display())
            })?,
            None => Tickets::passing(),
        };
        Ok(Arc::clone(self.tickets.get_or_init(|| Arc::new(tickets))))
    }
}

/// The facts about all certificates together.
fn facts(configuration: &Configuration, certificates: &[SiteCertificate]) -> Facts {
    let top = configuration.acme.hosts.clone();
    let sites = configuration.sites.iter().map(|(hosts, _)| hosts.clone());
    let mut all = Facts::default();
    for (site_certificate, hosts) in certificates.iter().zip([top].into_iter().chain(sites)) {
        let facts = match site_certificate {
            SiteCertificate::None => continue,
            SiteCertificate::Fixed(_, facts) => facts.clone(),
            SiteCertificate::Changing(_) => Facts::issued(hosts),
        };
        all.names.extend(facts.names);
        all.is_public |= facts.is_public;
    }
    all
}

/// The names of this machine, as far as it knows them.
fn own_names() -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    // If the system does not report its name, clients do not use it either.
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names.extend(Some(own.trim().to_owned()).filter(|name| !name.is_empty() && name.is_ascii()));
    names
}

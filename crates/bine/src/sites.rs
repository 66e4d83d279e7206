//! Virtual hosts: which site a request is for, and the files of that site.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bine_files::{FieldRule, Files, Root, Rules};
use bine_http::Head;
use bine_server::{Answer, Clock, Incoming, Outgoing};

/// The settings of a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SiteChoices {
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) certificate_key: Option<PathBuf>,
    pub(crate) index: Vec<String>,
    pub(crate) listing: bool,
    pub(crate) precompressed: bool,
    pub(crate) hidden: bool,
    pub(crate) fields: Vec<FieldRule>,
    /// Whether the site also has the program's pages.
    pub(crate) pages: bool,
}

impl Default for SiteChoices {
    fn default() -> Self {
        Self {
            root: None,
            certificate: None,
            certificate_key: None,
            index: Vec::new(),
            listing: false,
            precompressed: true,
            hidden: false,
            fields: Vec::new(),
            pages: true,
        }
    }
}

/// Parses a rule for header fields: a pattern of paths and a field, as in `*.css Cache-Control:
/// max-age=3600`.
pub(crate) fn field_rule(text: &str) -> Result<FieldRule, String> {
    let wrong = || "must be a pattern and a field: *.css Cache-Control: max-age=3600".to_owned();
    let (pattern, field) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
    let (name, value) = field.split_once(':').ok_or_else(wrong)?;
    FieldRule::new(pattern, name.trim(), value.trim())
}

/// Parses the name of a single host.
pub(crate) fn exact_host(text: &str) -> Result<HostPattern, String> {
    let host = HostPattern::parse(text)?;
    match host.exact() {
        Some(_) => Ok(host),
        None => Err(format!("`{text}` is no name of one host: write example.org")),
    }
}

/// The hosts of a site: one by name, or all below a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HostPattern {
    /// A host name in lower case.
    Exact(Box<str>),
    /// A domain: `*.example.org` without the star.
    Below(Box<str>),
}

impl HostPattern {
    /// Parses `example.org` or `*.example.org`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let small = text.to_ascii_lowercase();
        let name = small.strip_prefix("*.").unwrap_or(&small);
        let is_address = name.starts_with('[') && name.ends_with(']');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_plain);
        if !is_address && !name.split('.').all(is_label) {
            return Err(format!(
                "`{text}` is not a host: write example.org or *.example.org, without a port"
            ));
        }
        Ok(match small.strip_prefix('*') {
            Some(below) => Self::Below(below.into()),
            None => Self::Exact(small.as_str().into()),
        })
    }

    /// The name, if the pattern is one host that has a name.
    pub(crate) fn exact(&self) -> Option<String> {
        match self {
            Self::Exact(name) if name.parse::<Ipv4Addr>().is_err() && !name.starts_with('[') => {
                Some(name.to_string())
            }
            _ => None,
        }
    }

    /// How well the pattern matches `host`, which has no port: a longer domain is better, and an
    /// exact name is best. `None` if it does not match.
    pub(crate) fn fit(&self, host: &str) -> Option<usize> {
        match self {
            Self::Exact(name) => name.eq_ignore_ascii_case(host).then_some(usize::MAX),
            Self::Below(domain) => {
                let start = host.len().checked_sub(domain.len())?;
                // The comparison is over bytes, since a client's host may have a multi-byte letter
                // across this position.
                let end = &host.as_bytes()[start..];
                (start > 0 && end.eq_ignore_ascii_case(domain.as_bytes())).then_some(domain.len())
            }
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*{domain}"),
        }
    }
}

/// All sites of a server. All threads share them.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// The first site serves every host that no other site has.
    sites: Vec<SiteFiles>,
    hosts: Vec<(HostPattern, usize)>,
}

#[derive(Debug)]
struct SiteFiles {
    root: Option<Arc<Root>>,
    rules: Arc<Rules>,
    pages: bool,
}

impl Sites {
    /// Opens the folders of the sites. A site without a folder has that of the program.
    ///
    /// # Errors
    ///
    /// Returns the name of a folder that cannot be opened, and the reason.
    pub(crate) fn open(
        default: &SiteChoices,
        others: &[(Vec<HostPattern>, SiteChoices)],
        folder: Option<&Path>,
    ) -> Result<Self, String> {
        let open = |choices: &SiteChoices| {
            let path = choices.root.as_deref().or(folder);
            let root = path.map(Root::open).transpose().map_err(|error| error.to_string())?;
            let rules = Arc::new(Rules {
                index: choices.index.clone(),
                listing: choices.listing,
                precompressed: choices.precompressed,
                hidden: choices.hidden,
                fields: choices.fields.clone(),
            });
            Ok::<_, String>(SiteFiles { root: root.map(Arc::new), rules, pages: choices.pages })
        };
        let mut own = Self { sites: vec![open(default)?], hosts: Vec::new() };
        for (hosts, choices) in others {
            let number = own.sites.len();
            own.sites.push(open(choices)?);
            own.hosts.extend(hosts.iter().map(|host| (host.clone(), number)));
        }
        Ok(own)
    }

    /// Whether any site has files.
    pub(crate) fn have_files(&self) -> bool {
        self.sites.iter().any(|site| site.root.is_some())
    }

    /// The calling thread's view of the sites.
    pub(crate) fn local(&self) -> LocalSites {
        let local = |site: &SiteFiles| {
            let files = |root| Files::new(root, Arc::clone(&site.rules));
            LocalSite { files: site.root.clone().map(files), pages: site.pages }
        };
        LocalSites { sites: self.sites.iter().map(local).collect(), hosts: self.hosts.clone() }
    }
}

/// One thread's view of the sites.
pub(crate) struct LocalSites {
    sites: Box<[LocalSite]>,
    hosts: Vec<(HostPattern, usize)>,
}

/// One thread's view of one site.
pub(crate) struct LocalSite {
    files: Option<Files>,
    /// Whether the site also has the program's pages.
    pub(crate) pages: bool,
}

impl LocalSites {
    /// The site of the request with this head.
    pub(crate) fn find(&mut self, head: &Head<'_>) -> &mut LocalSite {
        let place = if self.hosts.is_empty() { 0 } else { place(&self.hosts, head.authority()) };
        &mut self.sites[place]
    }
}

impl LocalSite {
    /// Sends a file, if there is one at `path`.
    pub(crate) fn respond(
        &mut self,
        path: &str,
        request: &Incoming<'_>,
        clock: &Clock,
        out: &mut Outgoing<'_>,
    ) -> Option<Answer> {
        self.files.as_mut()?.respond(path, request, clock, out)
    }
}

pub(crate) fn place(hosts: &[(HostPattern, usize)], authority: Option<&str>) -> usize {
    let Some(host) = authority.map(without_port) else { return 0 };
    let fits = hosts.iter().filter_map(|(pattern, site)| Some((pattern.fit(host)?, *site)));
    fits.max_by_key(|(fit, _)| *fit).map_or(0, |(_, site)| site)
}

/// Removes the port and a final dot: `[::1]:80` becomes `[::1]`, and `example.org.` becomes
/// `example.org`.
pub(crate) fn without_port(authority: &str) -> &str {
    let end = match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => colon,
        _ => authority.len(),
    };
    let host = &authority[..end];
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(authority: &str) -> usize {
        let hosts = ["example.org", "*.example.org", "*.deep.example.org", "[::1]"];
        let hosts: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(number, host)| (HostPattern::parse(host).unwrap(), number + 1))
            .collect();
        place(&hosts, Some(authority))
    }

    #[test]
    fn finds_the_longest_match_ignoring_case_and_port() {
        for (authority, site) in [
            ("example.org", 1),
            ("EXAMPLE.org:8080", 1),
            ("example.org.", 1),
            ("www.example.org", 2),
            ("a.b.example.org:1", 2),
            ("a.deep.example.org", 3),
            ("deep.example.org", 2),
            ("[::1]:80", 4),
            ("[::1]", 4),
            ("anexample.org", 0),
            (".example.org", 0),
            ("", 0),
            ("example.com", 0),
        ] {
            assert_eq!(found(authority), site, "{authority}");
        }
    }

    #[test]
    fn rejects_invalid_hosts() {
        for wrong in ["", "*", "*.", "a b", "example.org:80", "a..b", "http://a", "*.*.a"] {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parses_field_rules() {
        let rule = FieldRule::new("*.css", "Cache-Control", "max-age=3600, immutable");
        assert_eq!(field_rule("*.css Cache-Control:max-age=3600, immutable"), rule);
        for wrong in
            ["", "*.css", "*.css Cache-Control", "*.css a b: c", "* A: b\u{7}", "* Date: x"]
        {
            assert!(field_rule(wrong).is_err(), "{wrong:?}");
        }
    }
}

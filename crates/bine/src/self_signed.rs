//! Self-signed certificates, and folders that only the server's user can read.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use bine_http::Date;

/// A certificate that nobody vouches for, good from the beginning of this year to the end of the next, and its key.
pub(crate) fn made_up(names: &[String]) -> Result<String, String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let date = Date::at(now.map_or(0, |since| since.as_secs()));
    let year: i32 = date.as_str().get(12..16).and_then(|year| year.parse().ok()).unwrap_or(1970);
    let made = || {
        let mut parameters = rcgen::CertificateParams::new(names)?;
        parameters.not_before = rcgen::date_time_ymd(year, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(year + 2, 1, 1);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "Bine, self-signed");
        let key = rcgen::KeyPair::generate()?;
        Ok(parameters.self_signed(&key)?.pem() + &key.serialize_pem())
    };
    made().map_err(|error: rcgen::Error| format!("cannot make a certificate: {error}"))
}

/// A folder for what nobody else may read.
pub(crate) fn make_folder(folder: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))
}

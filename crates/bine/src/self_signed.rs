//! Self-signed certificates, and folders that only the server's user can read.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use bine_http::Date;

/// Creates a self-signed certificate and its key, valid from the beginning of this year to the end
/// of the next.
pub(crate) fn create_self_signed(names: &[String]) -> Result<String, String> {
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
    made().map_err(|error: rcgen::Error| format!("cannot create a certificate: {error}"))
}

/// Creates a folder that other users cannot read.
pub(crate) fn create_private_folder(folder: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("cannot create the folder {}: {error}", folder.display()))
}

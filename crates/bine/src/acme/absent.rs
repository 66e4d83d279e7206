//! The stand-in for the module `acme` in programs built without that feature.
#![allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same calls as with it")]

use std::path::Path;
use std::sync::Arc;

use bine_server::tls::Certificate;

use crate::acme_choices::AcmeChoices;

/// The stand-in for the client of an authority.
#[derive(Default)]
pub(crate) struct Acme;

/// A type without values.
pub(crate) enum Slot {}

/// A type without values.
pub(crate) enum Plan {}

impl Acme {
    pub(crate) fn plan(
        &self,
        _choices: &AcmeChoices,
        _data: &Path,
        _hosts: Vec<Vec<String>>,
    ) -> Result<(Plan, Vec<Arc<Slot>>), String> {
        Err("tls = \"acme\": this program was built without ACME; enable the feature `acme` of the crate `bine`".to_owned())
    }

    pub(crate) fn pursue(&self, plan: Option<Plan>) -> Result<(), String> {
        match plan {
            None => Ok(()),
            Some(never) => match never {},
        }
    }

    pub(crate) const fn proof(&self, _target: &str) -> Option<String> {
        None
    }
}

impl Slot {
    pub(crate) fn certificate(&self) -> Certificate {
        match *self {}
    }
}

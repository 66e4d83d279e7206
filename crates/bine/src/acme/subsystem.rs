//! The client of certificate authorities as a subsystem of a program.

use std::path::Path;
use std::sync::Arc;

use bine_server::tls::Certificate;

use super::{Acme, Plan, Slot};
use crate::acme_choices::AcmeChoices;
use crate::authority::{CertificateAuthority, CertificatePlan, ChangingCertificate};
use crate::subsystem::{Definition, Registration, Subsystem};

inventory::submit! {
    Registration { rank: 60, create: || Box::new(AcmeSubsystem) }
}

/// The client of certificate authorities, in a program that has not started.
struct AcmeSubsystem;

impl Subsystem for AcmeSubsystem {
    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        definition.authority = Some(Arc::new(Acme::default()));
        Ok(())
    }
}

impl CertificateAuthority for Acme {
    fn plan(
        &self,
        choices: &AcmeChoices,
        data: &Path,
        hosts: Vec<Vec<String>>,
    ) -> Result<(CertificatePlan, Vec<Arc<dyn ChangingCertificate>>), String> {
        let (plan, slots) = self.plan(choices, data, hosts)?;
        let slots = slots.into_iter().map(|slot| slot as Arc<dyn ChangingCertificate>);
        Ok((Box::new(plan), slots.collect()))
    }

    fn pursue(&self, plan: Option<CertificatePlan>) -> Result<(), String> {
        let own = |plan: CertificatePlan| plan.downcast::<Plan>().ok().map(|plan| *plan);
        self.pursue(plan.and_then(own))
    }

    fn proof(&self, target: &str) -> Option<String> {
        self.challenges.proof(target)
    }
}

impl ChangingCertificate for Slot {
    fn certificate(&self) -> Certificate {
        self.certificate()
    }
}

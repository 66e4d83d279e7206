//! Validation of markup against the HTML standard, with the shared checks of `bine_markup`.

use bine_markup::Dialect;

use crate::fault::Fault;
use crate::tree::Node;

/// Reports the errors in `nodes`.
pub(crate) fn check(nodes: &[Node], faults: &mut Vec<Fault>) {
    let mut found = Vec::new();
    bine_markup::check(nodes, Dialect::RUST, &mut found);
    faults.extend(found.into_iter().map(|fault| Fault::at(fault.origin, fault.message)));
}

#[cfg(test)]
mod standard;
#[cfg(test)]
mod tests;

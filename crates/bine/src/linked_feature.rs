//! Finds out at link time whether a program needs the browser script: live regions may be in any of
//! its crates.

/// A registration that a macro writes where a program uses the browser script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkedFeature {
    /// A live region in a page.
    Region,
    /// Pages without the script, even with live regions: a test binary contains many programs.
    BarePages,
}

inventory::collect!(LinkedFeature);

impl LinkedFeature {
    /// Whether pages load the script. `is_called`: the program has services that browsers may call.
    pub(crate) fn script(is_called: bool) -> bool {
        Self::wants_script(is_called, inventory::iter::<Self>.into_iter().copied())
    }

    fn wants_script(is_called: bool, mut linked: impl Iterator<Item = Self> + Clone) -> bool {
        !linked.clone().any(|one| one == Self::BarePages)
            && (is_called || linked.any(|one| one == Self::Region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_script_for_services_and_regions() {
        let wants = |is_called, linked: &[LinkedFeature]| {
            LinkedFeature::wants_script(is_called, linked.iter().copied())
        };
        assert!(wants(true, &[]) && wants(false, &[LinkedFeature::Region]));
        assert!(
            !wants(false, &[]) && !wants(true, &[LinkedFeature::Region, LinkedFeature::BarePages])
        );
    }
}

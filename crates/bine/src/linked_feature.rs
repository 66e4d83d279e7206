//! Facts about the whole binary that the linker collects, such as whether a program needs the
//! browser script: live regions may be in any of its crates.

/// A registration that a macro writes where a program uses a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkedFeature {
    /// A live region in a page.
    Region,
    /// A file of the browser, whose functions the script calls.
    Handler,
    /// A time for people in a page.
    Time,
    /// Many programs in one binary, as in the tests of this crate: linked features are not those of
    /// one program. Pages have no script, even with live regions.
    ManyPrograms,
}

inventory::collect!(LinkedFeature);

impl LinkedFeature {
    /// Whether pages load the script. `is_called`: the program has services that browsers may call.
    pub(crate) fn script(is_called: bool) -> bool {
        Self::wants_script(is_called, inventory::iter::<Self>.into_iter().copied())
    }

    /// Whether pages load the module that shows times.
    pub(crate) fn times() -> bool {
        Self::wants_times(inventory::iter::<Self>.into_iter().copied())
    }

    /// Whether the binary contains many programs.
    pub(crate) fn has_many_programs() -> bool {
        inventory::iter::<Self>.into_iter().any(|one| *one == Self::ManyPrograms)
    }

    fn wants_times(mut linked: impl Iterator<Item = Self> + Clone) -> bool {
        !linked.clone().any(|one| one == Self::ManyPrograms) && linked.any(|one| one == Self::Time)
    }

    fn wants_script(is_called: bool, mut linked: impl Iterator<Item = Self> + Clone) -> bool {
        !linked.clone().any(|one| one == Self::ManyPrograms)
            && (is_called || linked.any(|one| matches!(one, Self::Region | Self::Handler)))
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
        assert!(wants(false, &[LinkedFeature::Handler]));
        assert!(
            !wants(false, &[])
                && !wants(true, &[LinkedFeature::Region, LinkedFeature::ManyPrograms])
        );
    }

    #[test]
    fn includes_times_only_where_a_page_writes_one() {
        let wants = |linked: &[LinkedFeature]| LinkedFeature::wants_times(linked.iter().copied());
        assert!(wants(&[LinkedFeature::Region, LinkedFeature::Time]));
        assert!(!wants(&[LinkedFeature::Region]));
        assert!(!wants(&[LinkedFeature::Time, LinkedFeature::ManyPrograms]));
        let script =
            |linked: &[LinkedFeature]| LinkedFeature::wants_script(false, linked.iter().copied());
        assert!(!script(&[LinkedFeature::Time]), "times need no live script");
    }
}

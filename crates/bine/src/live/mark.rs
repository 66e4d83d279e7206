//! Decides how it is known that a program has something that lives, wherever in it and its libraries that stands.

/// What a macro leaves for the linker where it writes something that a browser's script is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// A region of a page.
    Region,
    /// Pages that are as they are written, whatever lives: a binary of tests is many programs.
    BarePages,
}

inventory::collect!(Has);

impl Has {
    /// Whether pages name the script, of a program where services may be called.
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
    fn the_script_is_for_services_and_regions() {
        let wants =
            |is_called, linked: &[Has]| Has::wants_script(is_called, linked.iter().copied());
        assert!(wants(true, &[]) && wants(false, &[Has::Region]));
        assert!(!wants(false, &[]) && !wants(true, &[Has::Region, Has::BarePages]));
    }
}

//! The settings of subsystems within a configuration, found by their type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// One value of each type.
#[derive(Debug, Default)]
pub(super) struct Choices(BTreeMap<TypeId, Box<dyn Choice>>);

/// A type that holds the settings of a subsystem. Its default applies without any key.
pub(crate) trait Choice: Any + Send + Sync + Debug {
    /// Copies the value.
    fn copy(&self) -> Box<dyn Choice>;
}

impl<T: Any + Send + Sync + Debug + Clone> Choice for T {
    fn copy(&self) -> Box<dyn Choice> {
        Box::new(self.clone())
    }
}

impl Choices {
    /// The value of this type, or its default.
    pub(super) fn get<T: Choice + Clone + Default>(&self) -> T {
        let found = self.0.get(&TypeId::of::<T>());
        let found = found.and_then(|choice| (&**choice as &dyn Any).downcast_ref::<T>());
        found.cloned().unwrap_or_default()
    }

    /// Changes the value of this type.
    pub(super) fn get_mut<T: Choice + Default>(&mut self) -> &mut T {
        let choice = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        let choice: &mut dyn Any = &mut **choice;
        choice.downcast_mut().expect("the key is the type of the value")
    }
}

impl Clone for Choices {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|(kind, choice)| (*kind, (**choice).copy())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_one_value_of_each_type() {
        let mut choices = Choices::default();
        assert_eq!(choices.get::<u8>(), 0);
        *choices.get_mut::<u8>() = 1;
        choices.get_mut::<String>().push('a');
        let copy = choices.clone();
        *choices.get_mut::<u8>() = 2;
        assert_eq!((copy.get::<u8>(), copy.get::<String>()), (1, "a".to_owned()));
        assert_eq!(choices.get::<u8>(), 2);
    }
}

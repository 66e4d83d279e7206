//! The user behind a request, as the program knows them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Who asks.
#[derive(Clone, Default)]
pub enum Who {
    /// Nobody of whom anything is known.
    #[default]
    Anonymous,
    /// Somebody of whom the program knows something.
    Known(Arc<dyn Visitor>),
}

/// What a program knows of whoever asks. It is found out once, in [`Responder::admit`](crate::Responder::admit), and goes with the request.
pub trait Visitor: Any + Send + Sync {
    /// By what name they are a user, if they are one.
    fn user(&self) -> Option<&str>;
}

/// A user of whom nothing but the name is known.
impl Visitor for String {
    fn user(&self) -> Option<&str> {
        Some(self)
    }
}

impl Who {
    /// A user of this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Known(Arc::new(name.into()))
    }

    /// By what name they are a user, if they are one.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Known(visitor) => visitor.user(),
        }
    }

    /// What is known of them, if it is this.
    pub fn known<V: Visitor>(&self) -> Option<Arc<V>> {
        let Self::Known(visitor) = self else { return None };
        let visitor: Arc<dyn Any + Send + Sync> = Arc::<dyn Visitor>::clone(visitor);
        visitor.downcast().ok()
    }

    /// The same for the access log, which wants no more than the name.
    pub(crate) fn forget(&mut self) {
        *self = self.user().map_or(Self::Anonymous, Self::named);
    }
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Who({})", self.user().unwrap_or("nobody"))
    }
}

//! The client's identity, as the program knows it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The identity of the client that sent a request.
#[derive(Clone, Default)]
pub enum Identity {
    /// The program has no information about the client.
    #[default]
    Anonymous,
    /// The program has this information about the client.
    Known(Arc<dyn Principal>),
}

/// The information that a program has about a client.
/// [`Responder::identify`](crate::Responder::identify) determines it once per request; it then
/// accompanies the request.
pub trait Principal: Any + Send + Sync {
    /// The name of the user, if the client is one.
    fn user(&self) -> Option<&str>;
}

/// A user with a name only.
impl Principal for String {
    fn user(&self) -> Option<&str> {
        Some(self)
    }
}

impl Identity {
    /// A user of this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Known(Arc::new(name.into()))
    }

    /// The name of the user, if the client is one.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Known(visitor) => visitor.user(),
        }
    }

    /// The visitor, if it has the type `V`.
    pub fn known<V: Principal>(&self) -> Option<Arc<V>> {
        let Self::Known(visitor) = self else { return None };
        let visitor: Arc<dyn Any + Send + Sync> = Arc::<dyn Principal>::clone(visitor);
        visitor.downcast().ok()
    }

    /// Drops everything except the name, which the access log needs.
    pub(crate) fn keep_name_only(&mut self) {
        *self = self.user().map_or(Self::Anonymous, Self::named);
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.user().unwrap_or("anonymous"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A visitor, with or without a name.
    struct Visitor(Option<&'static str>);

    impl Principal for Visitor {
        fn user(&self) -> Option<&str> {
            self.0
        }
    }

    #[test]
    fn returns_the_visitor_by_its_type_only() {
        let identity = Identity::Known(Arc::new(Visitor(Some("ann"))));
        assert_eq!(identity.user(), Some("ann"));
        assert!(identity.known::<Visitor>().is_some_and(|visitor| visitor.0 == Some("ann")));
        assert!(identity.known::<String>().is_none());
        assert!(Identity::Anonymous.known::<Visitor>().is_none());
        assert_eq!(
            Identity::named("bob").known::<String>().as_deref().map(|name| &**name),
            Some("bob")
        );
    }

    #[test]
    fn keeps_nothing_but_the_name_for_the_log() {
        let mut identity = Identity::Known(Arc::new(Visitor(Some("ann"))));
        identity.keep_name_only();
        assert!(identity.known::<Visitor>().is_none() && identity.user() == Some("ann"));
        let mut nameless = Identity::Known(Arc::new(Visitor(None)));
        nameless.keep_name_only();
        assert!(matches!(nameless, Identity::Anonymous));
    }

    #[test]
    fn shows_the_name_of_the_user() {
        assert_eq!(format!("{:?}", Identity::named("ann")), "Identity(ann)");
        assert_eq!(format!("{:?}", Identity::Anonymous), "Identity(anonymous)");
    }
}

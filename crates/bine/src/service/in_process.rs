//! Calls of services by their own program: by other services, and by scripts.
//!
//! A called service has the request of its caller: the same user, session and rule of access. Its
//! arguments and its answer pass as JSON, as over HTTP. Within a transaction of the caller, a
//! service that is a transaction joins it: both commit together, and an error takes back the writes
//! of the called service only.

#[cfg(all(test, feature = "test"))]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use bine_http::Status;
use bine_log as log;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::answer::{CallOutcome, ServiceOutput, json_of};
use super::call::{Call, Caller};
use super::call_arguments::CallArguments;
use super::rule::rule_for;
use super::type_shape::ServiceShape;
use super::{Signature, run_to_outcome};
use crate::app_state::AppState;
use crate::error::Error;
use crate::nearest::nearest;
use crate::panics;
use crate::route::Route;
use crate::store::Transaction;
use crate::wire::{self, Value};

/// A service that its own program can call. A subsystem implements it for services that are no
/// functions of Rust.
pub(crate) trait InProcessService: Send + Sync {
    /// Calls it outside of a transaction. The answer is `null` if the service has none.
    ///
    /// # Errors
    ///
    /// The rule of access, the arguments, or the service itself.
    fn call(&self, caller: Caller, given: CallArguments) -> InProcessAnswer;

    /// Calls it within a transaction of the caller.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), or the service cannot join a transaction.
    fn join(
        &self,
        caller: Caller,
        given: CallArguments,
        transaction: &mut Transaction,
    ) -> Result<Value, Error>;
}

/// The answer of a called service. The thread of the caller polls it.
pub(crate) type InProcessAnswer = Pin<Box<dyn Future<Output = Result<Value, Error>>>>;

/// Services that a subsystem finds at the time of the call, since they may change while the program
/// runs.
pub(crate) trait ServiceSource: Send + Sync {
    /// The service at this address.
    fn find(&self, path: &str) -> Option<Arc<dyn InProcessService>>;
}

/// The source of a program's services that are no functions of Rust, as a state of the program.
pub(crate) struct OtherServices(pub(crate) Arc<dyn ServiceSource>);

/// The services of a program that are functions of Rust, by their addresses.
#[derive(Clone, Default)]
pub(crate) struct ServiceDirectory(BTreeMap<&'static str, NamedService>);

/// A service that is a function of Rust.
#[derive(Clone)]
pub(crate) struct NamedService {
    /// The path of the function, starting with its crate.
    pub(crate) name: &'static str,
    /// Its address.
    pub(crate) path: &'static str,
    /// Names and types of the arguments, as the declaration spells them.
    pub(crate) arguments: &'static [(&'static str, &'static str)],
    /// The type of the answer, as the declaration spells it, or empty.
    pub(crate) answer: &'static str,
    service: Arc<dyn InProcessService>,
    shape: Arc<LazyLock<ServiceShape, DescribeService>>,
}

/// Finds the shape of a service.
pub(super) type DescribeService = Box<dyn FnOnce() -> ServiceShape + Send + Sync>;

/// Services that call each other may nest this deep: a recursion across languages uses the stack of
/// both.
const MAX_DEPTH: u8 = 32;

impl ServiceDirectory {
    /// The services among these routes.
    pub(crate) fn of(routes: &[Route]) -> Self {
        let attached = routes.iter().filter_map(|route| route.attached.as_ref());
        let services = attached.filter_map(|attached| attached.downcast_ref::<NamedService>());
        Self(services.map(|own| (own.path, own.clone())).collect())
    }

    /// Whether there is no service.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All services, ordered by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NamedService> {
        self.0.values()
    }

    /// The service whose function has this name, without its crate and module.
    ///
    /// # Errors
    ///
    /// No service or several services have this name, in a sentence.
    pub(crate) fn named(&self, name: &str) -> Result<&NamedService, String> {
        let mut found = self.iter().filter(|own| own.function() == name);
        match (found.next(), found.next()) {
            (Some(own), None) => Ok(own),
            (Some(one), Some(other)) => Err(format!(
                "two services are called `{name}`: {} and {}; give one function another name",
                one.name, other.name
            )),
            (None, _) => Err(match nearest(self.iter().map(NamedService::function), name) {
                Some(near) => {
                    format!("the program has no service `{name}`; did you mean `{near}`?")
                }
                None => format!(
                    "the program has no service `{name}`: add `.service({name})` to the app"
                ),
            }),
        }
    }
}

/// Checks that the program may call the service at this address without arguments.
///
/// # Errors
///
/// The program has no such service, or it has arguments, in a sentence.
pub(crate) fn check_scheduled(app: &AppState, path: &str) -> Result<(), String> {
    let own = app.states.find::<ServiceDirectory>().and_then(|own| own.0.get(path));
    match own {
        Some(own) if own.arguments.is_empty() => Ok(()),
        Some(own) => Err(format!(
            "{path} cannot run at an interval, because it has arguments: schedule a service without arguments that calls {}",
            own.name
        )),
        None if app
            .states
            .find::<OtherServices>()
            .is_some_and(|all| all.0.find(path).is_some()) =>
        {
            Ok(())
        }
        None => Err(format!(
            "{path} cannot run at an interval, because the program has no such service: add `.service(..)` to the app, or correct `every`"
        )),
    }
}

impl NamedService {
    /// The data attached to the route of a service.
    pub(super) fn attached<B, J, K, D, R>(
        path: &'static str,
        service: RustService<B, J, K>,
        describe: DescribeService,
    ) -> Arc<dyn Any + Send + Sync>
    where
        B: Fn(Caller, CallArguments) -> Result<D, Error> + Send + Sync + 'static,
        J: Fn(Caller, CallArguments, &mut Transaction) -> Result<R, Error> + Send + Sync + 'static,
        D: Future<Output = Result<R, Error>> + 'static,
        R: ServiceOutput<K> + 'static,
        K: 'static,
    {
        let &Signature { name, arguments, answer: (answer, _), .. } = service.signature;
        let shape = Arc::new(LazyLock::new(describe));
        Arc::new(Self { name, path, arguments, answer, service: Arc::new(service), shape })
    }

    /// The shapes of its arguments and of its answer. The first call finds them.
    pub(crate) fn shape(&self) -> &ServiceShape {
        &self.shape
    }

    /// The name of the function alone.
    pub(crate) fn function(&self) -> &'static str {
        self.name.rsplit("::").next().unwrap_or_default()
    }
}

impl Caller {
    /// Calls the service at this address, such as `/board/post`, outside of a transaction.
    pub(crate) fn call_service_json(
        &self,
        path: &str,
        arguments: Map<String, Value>,
    ) -> InProcessAnswer {
        match self.prepare(path) {
            Ok((service, caller)) => service.call(caller, CallArguments::of(arguments)),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    /// Calls the service at this address within a transaction. If it fails or panics, its writes
    /// are taken back, and the transaction may go on.
    pub(crate) fn join_service(
        &self,
        path: &str,
        arguments: Map<String, Value>,
        transaction: &mut Transaction,
    ) -> Result<Value, Error> {
        let (service, caller) = self.prepare(path)?;
        let given = CallArguments::of(arguments);
        transaction.attempt(|transaction| {
            let work = || service.join(caller, given, transaction);
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                log::error(format_args!(
                    "{path} panicked; the service that called it got an error"
                ));
                // The log has the message, and a later panic has its own.
                drop(panics::take_last_message());
                Err(panicked(path))
            })
        })
    }

    /// Calls a service of this program by its address, such as `/board/post`, outside of a
    /// transaction. The services of applications in TSX have no function of Rust, so they are called
    /// in this way. Arguments and answer pass as JSON: `arguments` is a struct or a map.
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Message {
    ///     body: &'static str,
    /// }
    ///
    /// #[service]
    /// async fn announce(caller: Caller) -> Result<(), Error> {
    ///     caller.call_service("/board/post", &Message { body: "We open at ten." }).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The called service fails, or its answer is not a `T`.
    pub async fn call_service<T: DeserializeOwned>(
        &self,
        path: &str,
        arguments: &impl Serialize,
    ) -> Result<T, Error> {
        let answer = self.call_service_json(path, object(arguments)?).await?;
        Ok(wire::from_value(&answer)?)
    }

    /// The service at this address, and its caller.
    fn prepare(&self, path: &str) -> Result<(Arc<dyn InProcessService>, Self), Error> {
        let caller = self.deeper(MAX_DEPTH).ok_or_else(|| {
            let told = format!(
                "services call each other more than {MAX_DEPTH} levels deep, the last one {path}: does one call itself without an end?"
            );
            Error::hidden(Status::SERVICE_UNAVAILABLE, told)
        })?;
        let states = &self.app().states;
        let own = states.find::<ServiceDirectory>().and_then(|own| own.0.get(path));
        let service = match own {
            Some(own) => Some(Arc::clone(&own.service)),
            None => states.find::<OtherServices>().and_then(|other| other.0.find(path)),
        };
        let service = service.ok_or_else(|| {
            let told = format!("a service calls {path}, which is no service of the program");
            Error::hidden(Status::INTERNAL_SERVER_ERROR, told)
        })?;
        Ok((service, caller))
    }
}

impl Call {
    /// Calls the service at this address within the transaction of this call, as
    /// [`Caller::call_service`] does outside of one.
    ///
    /// # Errors
    ///
    /// The called service fails, and its writes are taken back; or its answer is not a `T`.
    pub fn call_service<T: DeserializeOwned>(
        &mut self,
        path: &str,
        arguments: &impl Serialize,
    ) -> Result<T, Error> {
        let arguments = object(arguments)?;
        let (transaction, caller) = self.parts();
        let answer = caller.join_service(path, arguments, transaction)?;
        Ok(wire::from_value(&answer)?)
    }
}

/// A service that is a function of Rust. `begin` starts it outside of a transaction, and `join` runs
/// it within one.
pub(super) struct RustService<B, J, K> {
    pub(super) signature: &'static Signature,
    pub(super) begin: Arc<B>,
    pub(super) join: J,
    pub(super) kind: PhantomData<fn() -> K>,
}

impl<B, J, K, D, R> InProcessService for RustService<B, J, K>
where
    B: Fn(Caller, CallArguments) -> Result<D, Error> + Send + Sync,
    J: Fn(Caller, CallArguments, &mut Transaction) -> Result<R, Error> + Send + Sync,
    D: Future<Output = Result<R, Error>> + 'static,
    R: ServiceOutput<K> + 'static,
{
    fn call(&self, caller: Caller, given: CallArguments) -> InProcessAnswer {
        let name = self.signature.name;
        let begun = self.admit(&caller).and_then(|()| (self.begin)(caller, given));
        Box::pin(async move {
            match run_to_outcome(name, begun?).await {
                CallOutcome::Done(answer) => answer.into_json(),
                CallOutcome::Failed(error) => Err(error),
                CallOutcome::Broken(_) => Err(panicked(name)),
            }
        })
    }

    fn join(
        &self,
        caller: Caller,
        given: CallArguments,
        transaction: &mut Transaction,
    ) -> Result<Value, Error> {
        self.admit(&caller)?;
        (self.join)(caller, given, transaction)?.into_json()
    }
}

impl<B, J, K> RustService<B, J, K> {
    fn admit(&self, caller: &Caller) -> Result<(), Error> {
        rule_for(self.signature.rule, caller.app()).admit(caller.context())
    }
}

fn panicked(name: &str) -> Error {
    Error::hidden(Status::INTERNAL_SERVER_ERROR, format!("{name} panicked"))
}

/// The arguments of a call as JSON.
fn object(arguments: &impl Serialize) -> Result<Map<String, Value>, Error> {
    match json_of(arguments)? {
        Value::Object(named) => Ok(named),
        Value::Null => Ok(Map::new()),
        _ => Err(Error::hidden(
            Status::INTERNAL_SERVER_ERROR,
            "the arguments of a call are a struct or a map, with each under its name".to_owned(),
        )),
    }
}

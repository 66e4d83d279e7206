//! The functions of scripts that set and clear timers, and the calls of what they have set.

use std::rc::Rc;
use std::time::Duration;

use rquickjs::{Ctx, Persistent};

use crate::convert::args;
use crate::exception;
use crate::host_error::HostError;
use crate::quickjs::{self, Arguments, Callback, Kind, Thrown};
use crate::state::State;
use crate::timers::{TIMER_KEY, Timer};

/// The longest delay, as in browsers.
const MAX_DELAY: f64 = 2_147_483_647.0;
/// The shortest period of an interval.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// The timers that are due now.
pub(crate) fn due(state: &State) -> Vec<u32> {
    state.timers.borrow().due(state.host.clock.now())
}

/// Calls the function of a timer in the context in which it was set, unless it was cleared.
pub(crate) fn fire(state: &State, ctx: &Ctx<'_>, id: u32) {
    let timer = {
        let mut timers = state.timers.borrow_mut();
        let Some(index) = timers.position(id) else { return };
        match timers.set[index].period {
            Some(period) => {
                timers.set[index].due = state.host.clock.now() + period;
                timers.set[index].clone()
            }
            None => timers.set.swap_remove(index),
        }
    };
    state.replace_context(timer.context);
    let Ok(function) = timer.function.restore(ctx) else { return };
    let arguments = timer.arguments.into_iter();
    let arguments = arguments.filter_map(|value| value.restore(ctx).ok()).collect();
    let Some(passed) = args(ctx, arguments) else { return };
    if function.call_arg::<rquickjs::Value<'_>>(passed).is_err() {
        state.host.messages.report(&exception::take(ctx));
    }
}

/// `setTimeout` or `setInterval`.
pub(crate) struct SetTimer {
    pub(crate) state: Rc<State>,
    pub(crate) repeats: bool,
}

/// `clearTimeout` and `clearInterval`.
pub(crate) struct ClearTimer {
    pub(crate) state: Rc<State>,
}

impl Callback for SetTimer {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<rquickjs::Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let refuse = |error: HostError| self.state.throw(ctx, &error);
        let Some(function) = arguments.at(0).clone().into_function() else {
            return Err(refuse(HostError::Type("a timer needs a function".to_owned())));
        };
        let delay = arguments.at(1).as_number().filter(|delay| *delay > 0.0).unwrap_or(0.0);
        let delay = Duration::from_secs_f64(delay.min(MAX_DELAY) / 1000.0);
        let mut timers = self.state.timers.borrow_mut();
        let limit = self.state.limits.timers;
        if timers.set.len() >= limit {
            return Err(refuse(HostError::Range(format!("more than {limit} timers"))));
        }
        let id = timers.last_id.wrapping_add(1).max(1);
        timers.last_id = id;
        let rest =
            (2..arguments.len()).map(|index| Persistent::save(ctx, arguments.at(index).clone()));
        let timer = Timer {
            id,
            due: self.state.host.clock.now() + delay,
            period: self.repeats.then(|| delay.max(MIN_PERIOD)),
            function: Persistent::save(ctx, function),
            arguments: rest.collect(),
            context: self.state.context(),
        };
        timers.set.push(timer);
        drop(timers);
        // The driver learns that the first timer may be another one.
        self.state.wakes.wake(TIMER_KEY);
        Ok(rquickjs::Value::new_number(ctx.clone(), f64::from(id)))
    }
}

impl Callback for ClearTimer {
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<rquickjs::Value<'js>, Thrown> {
        let ctx = arguments.ctx();
        let id = arguments.at(0);
        if quickjs::kind(&id) == Kind::Number {
            // A number that is no id becomes another number, or that of another timer at worst.
            #[expect(
                clippy::cast_sign_loss,
                reason = "a negative number becomes 0, which is no id"
            )]
            let id = id.as_number().unwrap_or_default() as u32;
            let mut timers = self.state.timers.borrow_mut();
            let index = timers.position(id);
            let removed = index.map(|index| timers.set.swap_remove(index));
            drop(timers);
            drop(removed);
        }
        Ok(rquickjs::Value::new_undefined(ctx.clone()))
    }
}

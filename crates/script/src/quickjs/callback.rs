//! Functions of the host that scripts can call.

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rquickjs::function::This;
use rquickjs::{Ctx, Exception, Function, Persistent, Value, qjs};

use super::raw::{self, Lent, Thrown};

/// A function of the host.
pub(crate) trait Callback {
    /// Returns the result, or sets a pending exception.
    fn call<'js>(&self, arguments: &Arguments<'_, 'js>) -> Result<Value<'js>, Thrown>;
}

/// The callbacks of one context. They live as long as the context, so the host bounds their number.
#[derive(Default)]
pub(crate) struct Callbacks {
    list: RefCell<Vec<Rc<dyn Callback>>>,
    /// The engine's own getter of an error's `stack`, which a script cannot replace here.
    stack_getter: RefCell<Option<Persistent<Function<'static>>>>,
}

/// The arguments of one call.
pub(crate) struct Arguments<'a, 'js> {
    ctx: &'a Ctx<'js>,
    raw: &'a [qjs::JSValue],
}

impl<'js> Arguments<'_, 'js> {
    pub(crate) const fn ctx(&self) -> &Ctx<'js> {
        self.ctx
    }

    pub(crate) const fn len(&self) -> usize {
        self.raw.len()
    }

    /// The argument of this index; `undefined` if it is missing.
    pub(crate) fn at(&self, index: usize) -> Lent<'_, 'js> {
        let value = self.raw.get(index).copied().unwrap_or(qjs::JS_UNDEFINED);
        // SAFETY: the engine keeps the arguments alive during the call.
        unsafe { raw::lent(self.ctx, value) }
    }
}

impl Callbacks {
    /// Makes the callbacks reachable from the context, which must not outlive them.
    ///
    /// The owner of a context keeps its callbacks until the context is freed.
    pub(crate) fn attach(self: &Rc<Self>, ctx: &Ctx<'_>) {
        let pointer = Rc::as_ptr(self).cast_mut();
        // SAFETY: the pointer stays valid by this function's contract; rquickjs does not use the
        // slot.
        unsafe { qjs::JS_SetContextOpaque(ctx.as_raw().as_ptr(), pointer.cast()) };
    }

    /// A function that calls `callback`.
    pub(crate) fn function<'js>(
        &self,
        ctx: &Ctx<'js>,
        callback: Rc<dyn Callback>,
    ) -> Result<Value<'js>, Thrown> {
        let mut list = self.list.borrow_mut();
        let index = c_int::try_from(list.len()).map_err(|_| Thrown)?;
        let context = ctx.as_raw().as_ptr();
        let mut data = [qjs::JS_MKVAL(qjs::JS_TAG_INT, index)];
        let first = data.as_mut_ptr();
        // SAFETY: the engine copies the data, which is one number. The result is owned.
        let function = unsafe {
            let function = qjs::JS_NewCFunctionData(context, Some(trampoline), 0, 0, 1, first);
            raw::owned(ctx, function)?
        };
        list.push(callback);
        Ok(function)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Keeps the getter that [`stack_of`] uses.
    pub(crate) fn set_stack_getter<'js>(&self, ctx: &Ctx<'js>, getter: Function<'js>) {
        self.stack_getter.replace(Some(Persistent::save(ctx, getter)));
    }

    /// Drops all callbacks. No script may run afterwards.
    pub(crate) fn clear(&self) {
        self.stack_getter.take();
        let list = std::mem::take(&mut *self.list.borrow_mut());
        drop(list);
    }

    fn at(&self, index: usize) -> Option<Rc<dyn Callback>> {
        self.list.borrow().get(index).cloned()
    }
}

/// The stack trace that the engine has recorded in an error. No code of the script runs.
pub(crate) fn stack_of(error: &Value<'_>) -> Option<String> {
    let ctx = error.ctx();
    // SAFETY: the owner of the context keeps the callbacks alive, or the pointer is null.
    let callbacks =
        unsafe { qjs::JS_GetContextOpaque(ctx.as_raw().as_ptr()).cast::<Callbacks>().as_ref() };
    let getter = callbacks?.stack_getter.borrow().clone()?.restore(ctx).ok()?;
    match getter.call::<_, Value<'_>>((This(error.clone()),)) {
        Ok(stack) => raw::with_text(&stack, str::to_owned),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

/// Calls the callback whose index is in `data`. A panic becomes an exception.
///
/// # Safety
/// The engine calls it with a live context to which [`Callbacks::attach`] has been applied, with
/// `count` arguments, and with the data of [`Callbacks::function`].
unsafe extern "C" fn trampoline(
    context: *mut qjs::JSContext,
    _this: qjs::JSValue,
    count: c_int,
    arguments: *mut qjs::JSValue,
    _magic: c_int,
    data: *mut qjs::JSValue,
) -> qjs::JSValue {
    // SAFETY: by this function's contract.
    let (ctx, index, callbacks, raw) = unsafe {
        let Some(ctx) = raw::context(context) else { return qjs::JS_EXCEPTION };
        let callbacks = qjs::JS_GetContextOpaque(context).cast::<Callbacks>();
        let count = usize::try_from(count).unwrap_or(0);
        let raw: &[qjs::JSValue] =
            if count == 0 { &[] } else { std::slice::from_raw_parts(arguments, count) };
        (ctx, qjs::JS_VALUE_GET_INT(*data), callbacks, raw)
    };
    // SAFETY: the owner of the context keeps the callbacks alive, or the pointer is null.
    let callback = unsafe { callbacks.as_ref() };
    let callback = callback.and_then(|callbacks| callbacks.at(usize::try_from(index).ok()?));
    let Some(callback) = callback else {
        Exception::throw_internal(&ctx, "the instance has ended");
        return qjs::JS_EXCEPTION;
    };
    let call = || callback.call(&Arguments { ctx: &ctx, raw });
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => raw::into_raw(value),
        Ok(Err(Thrown)) => qjs::JS_EXCEPTION,
        Err(_panic) => {
            Exception::throw_internal(&ctx, "the host function has failed");
            qjs::JS_EXCEPTION
        }
    }
}

//! Classes of the engine whose objects own a value of the host.

use std::ffi::CStr;
use std::marker::PhantomData;

use rquickjs::{Ctx, Object, Value, qjs};

use super::raw::{self, Thrown};

/// A class of one engine. Each of its objects owns a `T`, which is dropped with the object.
pub(crate) struct ObjectClass<T> {
    id: qjs::JSClassID,
    owned: PhantomData<fn() -> T>,
}

impl<T> Clone for ObjectClass<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ObjectClass<T> {}

impl<T: 'static> ObjectClass<T> {
    /// Registers the class. `prototype` becomes the prototype of its objects, which have none without
    /// it.
    pub(crate) fn register(
        ctx: &Ctx<'_>,
        name: &'static CStr,
        prototype: Option<&Object<'_>>,
    ) -> Result<Self, Thrown> {
        let mut id = 0;
        let definition = qjs::JSClassDef {
            class_name: name.as_ptr(),
            finalizer: Some(finalize::<T>),
            gc_mark: None,
            call: None,
            exotic: std::ptr::null_mut(),
        };
        // SAFETY: the engine copies the definition; the prototype's reference is given to it.
        unsafe {
            let context = ctx.as_raw().as_ptr();
            let runtime = qjs::JS_GetRuntime(context);
            qjs::JS_NewClassID(runtime, &raw mut id);
            if qjs::JS_NewClass(runtime, id, &raw const definition) < 0 {
                return Err(Thrown);
            }
            if let Some(prototype) = prototype {
                qjs::JS_SetClassProto(context, id, raw::into_raw(prototype.as_value().clone()));
            }
        }
        Ok(Self { id, owned: PhantomData })
    }

    /// A new object that owns `value`.
    pub(crate) fn create<'js>(self, ctx: &Ctx<'js>, value: T) -> Result<Value<'js>, Thrown> {
        // SAFETY: the object is new, and its finalizer drops the box. The result is owned.
        unsafe {
            let object = qjs::JS_NewObjectClass(ctx.as_raw().as_ptr(), self.id);
            if qjs::JS_IsException(object) {
                return Err(Thrown);
            }
            qjs::JS_SetOpaque(object, Box::into_raw(Box::new(value)).cast());
            raw::owned(ctx, object)
        }
    }

    /// The value that an object owns; `None` if it has another class.
    pub(crate) fn read<'v>(self, value: &'v Value<'_>) -> Option<&'v T> {
        // SAFETY: objects of the class have a box of `create`, or none. The box lives as long as the
        // object, to which `value` holds a reference, and no exclusive reference to it exists.
        unsafe { qjs::JS_GetOpaque(value.as_raw(), self.id).cast::<T>().as_ref() }
    }

    /// The prototype of the class.
    pub(crate) fn prototype<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>, Thrown> {
        // SAFETY: the class belongs to the engine of the context. The result is owned.
        unsafe { raw::owned(ctx, qjs::JS_GetClassProto(ctx.as_raw().as_ptr(), self.id)) }
    }
}

/// Drops the value of an object.
///
/// # Safety
/// The engine calls it once for each object of the class of `T`.
unsafe extern "C" fn finalize<T>(_: *mut qjs::JSRuntime, object: qjs::JSValue) {
    let mut id = 0;
    // SAFETY: by this function's contract, the object has the class of `T`, and its box is not used
    // any more.
    unsafe {
        let owned = qjs::JS_GetAnyOpaque(object, &raw mut id).cast::<T>();
        if !owned.is_null() {
            drop(Box::from_raw(owned));
        }
    }
}
